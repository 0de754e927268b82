/* What a C program has besides its compiler: input and output by system calls, and a part of the standard
   library, under the usual names. A program that keeps to these compiles for any other machine as well. */
#ifndef TAPEGRAD_H
#define TAPEGRAD_H

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* TAPEGRAD_RAM(16384); outside all functions gives the program so much memory, in bytes. */
#define TAPEGRAD_RAM(bytes) __asm__(".globl __ram\n.set __ram, " #bytes)

#endif
