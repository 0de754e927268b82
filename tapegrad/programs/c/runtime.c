/* Start-up code, system calls, and the functions of the headers beside this file, as one unit. The linker leaves
   out what is not used. A program may have functions of its own by the same names: then those count, for the
   LIBRARY's are weak. So nothing here calls such a name, but for the four that compilers call by themselves, and
   those of <math.h>. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIBRARY __attribute__((weak))
#define APART __attribute__((noinline))  /* smaller so */

/* Memory is what counts, so programs get these parts only if they need them (tapegrad/programs/compiler.py):
   TAPEGRAD_ARGUMENTS, TAPEGRAD_ATEXIT, TAPEGRAD_FEOF and TAPEGRAD_FLOATS. */

#ifdef TAPEGRAD_ARGUMENTS
static const char *const arguments[] = {"program", 0};
#define ARGUMENTS "li a0, 1\nlla a1, %0\n"
#else
#define ARGUMENTS "li a0, 0\nli a1, 0\n"
#endif

/* Guards (tapegrad/programs/compiler.py). The compiler checks pointers before it loads or stores, but not where a
   whole structure is assigned. So the word at address 0 is nobody's, and whoever ends looks whether it is still 0.
   gp is the end of what the stack must leave alone. */
#define UNTOUCHED "lw t0, 0(zero)\nbeqz t0, 1f\nunimp\n1:\n"
#ifdef TAPEGRAD_ATEXIT
#define ENDING "tail %1\n"
#else
#define ENDING UNTOUCHED "li a7, 93\necall\n"
#endif

__attribute__((used, naked, section(".text.start"), patchable_function_entry(0))) void _start(void)
{
    __asm__("lla gp, __heap\n" ARGUMENTS "call main\n" ENDING ::
#ifdef TAPEGRAD_ARGUMENTS
                "i"(arguments),
#else
                "i"(0),
#endif
            "i"(exit));
}

static long system_call(long number, long a, long b, long c)
{
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

static long put_bytes(int file, const void *from, size_t count) { return system_call(64, file, (long)from, (long)count); }

LIBRARY ssize_t read(int file, void *to, size_t count)
{
    if (!to && count) __builtin_trap();
    return system_call(63, file, (long)to, (long)count);
}

LIBRARY ssize_t write(int file, const void *from, size_t count)
{
    if (!from && count) __builtin_trap();
    return put_bytes(file, from, count);
}

static _Noreturn void stop(int code)
{
    register long a7 __asm__("a7") = 93;
    register long a0 __asm__("a0") = code;
    __asm__ volatile(UNTOUCHED "ecall" ::"r"(a0), "r"(a7) : "t0");
    __builtin_unreachable();
}

LIBRARY void _exit(int code) { stop(code); }

LIBRARY void _Exit(int code) { stop(code); }

LIBRARY void abort(void) { stop(134); }  /* as a shell sees a program that has aborted */

#ifdef TAPEGRAD_ATEXIT
static void (*told[32])(void);
static int tellings;
#endif

LIBRARY void exit(int code)
{
#ifdef TAPEGRAD_ATEXIT
    while (tellings) told[--tellings]();
#endif
    stop(code);
}

LIBRARY int atexit(void (*function)(void))
{
#ifdef TAPEGRAD_ATEXIT
    if (tellings < 32) {
        told[tellings++] = function;
        return 0;
    }
#endif
    return 1;
}

LIBRARY int errno;

LIBRARY time_t time(time_t *also_there)
{
    if (also_there) *also_there = 0;
    return 0;
}

LIBRARY clock_t clock(void) { return 0; }

LIBRARY char *setlocale(int category, const char *name)
{
    (void)category;
    return !name || !*name || (*name == 'C' && !name[1]) ? "C" : 0;
}

LIBRARY char *getenv(const char *name) { return (void)name, (char *)0; }

/* What setjmp keeps: the registers that a call preserves. */
#define KEPT(what)                                                                                            \
    what " ra, 0(a0)\n" what " sp, 4(a0)\n" what " s0, 8(a0)\n" what " s1, 12(a0)\n" what " s2, 16(a0)\n" what  \
         " s3, 20(a0)\n" what " s4, 24(a0)\n" what " s5, 28(a0)\n" what " s6, 32(a0)\n" what " s7, 36(a0)\n" what \
         " s8, 40(a0)\n" what " s9, 44(a0)\n" what " s10, 48(a0)\n" what " s11, 52(a0)\n"

__attribute__((weak, naked)) int setjmp(jmp_buf place) { __asm__(KEPT("sw") "li a0, 0\nret"); }

__attribute__((weak, naked)) void longjmp(jmp_buf place, int value)
{
    __asm__(KEPT("lw") "seqz a0, a1\nadd a0, a0, a1\nret");
}

#include "memory.c"
#include "files.c"
#include "numbers.c"
#include "floats.c"
#include "print.c"
#include "scan.c"
#include "math.c"
