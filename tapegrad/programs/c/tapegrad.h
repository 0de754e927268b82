/* What a C program has besides its compiler: input and output by system calls, and a little of the standard
   library. <stdio.h>, <stdlib.h>, <string.h>, <ctype.h> and <assert.h> are this file, so that a program that
   keeps to it compiles for any other machine as well. */
#ifndef TAPEGRAD_H
#define TAPEGRAD_H

#include <stdarg.h>
#include <stddef.h>

#define EOF (-1)
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 0x7fffffff

/* TAPEGRAD_RAM(16384); outside all functions gives the program so much memory, in bytes. */
#define TAPEGRAD_RAM(bytes) __asm__(".globl __ram\n.set __ram, " #bytes)

int putchar(int c);
int getchar(void);
int puts(const char *text);
int printf(const char *format, ...);  /* %d %i %u %x %X %o %c %s %p %%, with - 0 + space, width, h l ll z */
int snprintf(char *to, size_t size, const char *format, ...);
int scanf(const char *format, ...);   /* %d %u %x %c %s %%, with width, h l */
long read(int file, void *to, size_t count);
long write(int file, const void *from, size_t count);

_Noreturn void exit(int code);
_Noreturn void abort(void);
void *malloc(size_t size);  /* grows towards the stack, and `free` gives nothing back */
void *calloc(size_t count, size_t size);
void free(void *block);
int abs(int n);
int atoi(const char *text);
int rand(void);
void srand(unsigned seed);

void *memcpy(void *to, const void *from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int byte, size_t count);
int memcmp(const void *a, const void *b, size_t count);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t count);
char *strcpy(char *to, const char *from);
char *strcat(char *to, const char *from);
char *strchr(const char *text, int c);

static inline int isdigit(int c) { return c >= '0' && c <= '9'; }
static inline int islower(int c) { return c >= 'a' && c <= 'z'; }
static inline int isupper(int c) { return c >= 'A' && c <= 'Z'; }
static inline int isalpha(int c) { return islower(c) || isupper(c); }
static inline int isalnum(int c) { return isalpha(c) || isdigit(c); }
static inline int isspace(int c) { return c == ' ' || (c >= 9 && c <= 13); }
static inline int toupper(int c) { return islower(c) ? c - 32 : c; }
static inline int tolower(int c) { return isupper(c) ? c + 32 : c; }

#define assert(condition) ((condition) ? (void)0 : (puts("assertion failed: " #condition), abort()))

#endif
