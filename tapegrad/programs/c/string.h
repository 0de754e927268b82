/* Blocks of memory, and texts. */
#ifndef TAPEGRAD_STRING_H
#define TAPEGRAD_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int byte, size_t count);
int memcmp(const void *a, const void *b, size_t count);
void *memchr(const void *block, int byte, size_t count);
size_t strlen(const char *text);
size_t strnlen(const char *text, size_t most);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t count);
int strcasecmp(const char *a, const char *b);
int strncasecmp(const char *a, const char *b, size_t count);
int strcoll(const char *a, const char *b);
char *strcpy(char *to, const char *from);
char *strncpy(char *to, const char *from, size_t count);
char *strcat(char *to, const char *from);
char *strncat(char *to, const char *from, size_t count);
char *strchr(const char *text, int c);
char *strrchr(const char *text, int c);
char *strstr(const char *text, const char *part);
char *strpbrk(const char *text, const char *any);
size_t strspn(const char *text, const char *any);
size_t strcspn(const char *text, const char *any);
char *strtok(char *text, const char *between);
char *strtok_r(char *text, const char *between, char **rest);
char *strdup(const char *text);
char *strerror(int number);

#endif
