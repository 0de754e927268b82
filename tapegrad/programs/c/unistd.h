/* System calls. */
#ifndef TAPEGRAD_UNISTD_H
#define TAPEGRAD_UNISTD_H

#include <stddef.h>

typedef long ssize_t;
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
ssize_t read(int file, void *to, size_t count);
ssize_t write(int file, const void *from, size_t count);
_Noreturn void _exit(int code);

#endif
