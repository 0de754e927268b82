"""RASP programs: are these heads and units the program, plain or in disguise?"""
