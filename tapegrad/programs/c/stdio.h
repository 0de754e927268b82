/* Input and output. The three standard files are all there are: 0 is the input, 1 and 2 are the output. */
#ifndef TAPEGRAD_STDIO_H
#define TAPEGRAD_STDIO_H

#include <stdarg.h>
#include <stddef.h>

#define EOF (-1)
#define BUFSIZ 256
#define FILENAME_MAX 256
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2

typedef struct { int number; } FILE;
extern FILE __standard_files[3];
#define stdin (&__standard_files[0])
#define stdout (&__standard_files[1])
#define stderr (&__standard_files[2])

int putchar(int c);
int putc(int c, FILE *file);
int fputc(int c, FILE *file);
int puts(const char *text);
int fputs(const char *text, FILE *file);
size_t fwrite(const void *from, size_t size, size_t count, FILE *file);
void perror(const char *text);

int getchar(void);
int getc(FILE *file);
int fgetc(FILE *file);
int ungetc(int c, FILE *file);
char *fgets(char *to, int size, FILE *file);
size_t fread(void *to, size_t size, size_t count, FILE *file);
int feof(FILE *file);
int ferror(FILE *file);
void clearerr(FILE *file);

/* Flags - 0 + space #, width, precision; hh h l ll j z t L; d i u x X o c s p n %, and f F e E g G. */
int printf(const char *format, ...);
int fprintf(FILE *file, const char *format, ...);
int sprintf(char *to, const char *format, ...);
int snprintf(char *to, size_t size, const char *format, ...);
int vprintf(const char *format, va_list values);
int vfprintf(FILE *file, const char *format, va_list values);
int vsprintf(char *to, const char *format, va_list values);
int vsnprintf(char *to, size_t size, const char *format, va_list values);

/* *, width; hh h l ll j z t L; d i u x X o c s [set] n %, and f e g. */
int scanf(const char *format, ...);
int fscanf(FILE *file, const char *format, ...);
int sscanf(const char *text, const char *format, ...);
int vscanf(const char *format, va_list values);
int vfscanf(FILE *file, const char *format, va_list values);
int vsscanf(const char *text, const char *format, va_list values);

/* There are no other files: none can be opened, and in the standard ones nobody goes back. What is written is
   written at once. */
FILE *fopen(const char *name, const char *mode);
FILE *freopen(const char *name, const char *mode, FILE *file);
int fseek(FILE *file, long offset, int from);
long ftell(FILE *file);
void rewind(FILE *file);
int remove(const char *name);
int fclose(FILE *file);
int fflush(FILE *file);
int setvbuf(FILE *file, char *buffer, int mode, size_t size);
void setbuf(FILE *file, char *buffer);
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2

#endif
