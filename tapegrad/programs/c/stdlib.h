/* Memory, numbers, sorting, and the end of a program. */
#ifndef TAPEGRAD_STDLIB_H
#define TAPEGRAD_STDLIB_H

#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 0x7fffffff

_Noreturn void exit(int code);
_Noreturn void _Exit(int code);
_Noreturn void abort(void);
int atexit(void (*function)(void));
char *getenv(const char *name);  /* there are no variables */

void *malloc(size_t size);  /* grows towards the stack */
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void free(void *block);

int abs(int n);
long labs(long n);
long long llabs(long long n);
typedef struct { int quot, rem; } div_t;
typedef struct { long quot, rem; } ldiv_t;
typedef struct { long long quot, rem; } lldiv_t;
div_t div(int a, int b);
ldiv_t ldiv(long a, long b);
lldiv_t lldiv(long long a, long long b);

int atoi(const char *text);
long atol(const char *text);
long long atoll(const char *text);
double atof(const char *text);
long strtol(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
long long strtoll(const char *text, char **end, int base);
unsigned long long strtoull(const char *text, char **end, int base);
double strtod(const char *text, char **end);
float strtof(const char *text, char **end);

int rand(void);
void srand(unsigned seed);

void qsort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *));
void *bsearch(const void *key, const void *items, size_t count, size_t size,
              int (*compare)(const void *, const void *));

#endif
