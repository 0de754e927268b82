#ifndef TAPEGRAD_ERRNO_H
#define TAPEGRAD_ERRNO_H

extern int errno;
#define ENOENT 2
#define ENOMEM 12
#define EINVAL 22
#define EDOM 33
#define ERANGE 34

#endif
