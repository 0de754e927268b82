/* Start-up code, system calls and the functions of tapegrad.h. The linker leaves out what is not used. */
#include <tapegrad.h>

__asm__(
    ".section .text.start, \"ax\"\n"
    ".globl _start\n"
    "_start:\n"
    "  li a0, 0\n"
    "  li a1, 0\n"
    "  call main\n"
    "  li a7, 93\n"
    "  ecall\n"
    ".text\n");

static long system_call(long number, long a, long b, long c)
{
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

long read(int file, void *to, size_t count) { return system_call(63, file, (long)to, (long)count); }

long write(int file, const void *from, size_t count) { return system_call(64, file, (long)from, (long)count); }

void exit(int code)
{
    system_call(93, code, 0, 0);
    for (;;) { }
}

void abort(void) { exit(134); }

/* Input and output */

static int waiting = EOF;  /* a character that scanf has looked at */

int getchar(void)
{
    unsigned char c;
    if (waiting != EOF) {
        int first = waiting;
        waiting = EOF;
        return first;
    }
    return read(0, &c, 1) == 1 ? c : EOF;
}

int putchar(int c)
{
    unsigned char byte = (unsigned char)c;
    return write(1, &byte, 1) == 1 ? byte : EOF;
}

int puts(const char *text)
{
    write(1, text, strlen(text));
    return putchar('\n');
}

struct sink {
    char *to;
    size_t size, count;
};

static void emit(struct sink *sink, char c)
{
    if (sink->to == 0)
        putchar(c);
    else if (sink->count + 1 < sink->size)
        sink->to[sink->count] = c;
    sink->count++;
}

/* Digits of high 2^32 + low, the lowest first. Each pass divides in three parts that fit a word. */
static int digits(char *to, unsigned high, unsigned low, unsigned base, char ten)
{
    int count = 0;
    do {
        unsigned rest = high % base, upper, lower;
        high /= base;
        upper = rest << 16 | low >> 16;
        lower = upper % base << 16 | (low & 0xffff);
        low = (upper / base) << 16 | lower / base;
        rest = lower % base;
        to[count++] = (char)(rest < 10 ? '0' + rest : ten + rest - 10);
    } while (high || low);
    return count;
}

static void print(struct sink *sink, const char *format, va_list values)
{
    for (; *format; format++) {
        char buffer[24], sign = 0, plus = 0, pad = ' ';
        const char *text = buffer;
        int left = 0, width = 0, limit = -1, longs = 0, length = 0, reversed = 0;
        if (*format != '%') {
            emit(sink, *format);
            continue;
        }
        for (format++; *format == '-' || *format == '0' || *format == '+' || *format == ' '; format++) {
            if (*format == '-') left = 1;
            else if (*format == '0') pad = '0';
            else plus = *format;
        }
        if (*format == '*') {
            width = va_arg(values, int);
            format++;
        }
        while (isdigit(*format)) width = 10 * width + *format++ - '0';
        if (*format == '.') {
            limit = 0;
            if (*++format == '*') {
                limit = va_arg(values, int);
                format++;
            }
            while (isdigit(*format)) limit = 10 * limit + *format++ - '0';
        }
        for (; *format == 'l' || *format == 'h' || *format == 'z'; format++) longs += *format == 'l';
        if (*format == 's') {
            text = va_arg(values, const char *);
            if (text == 0) text = "(null)";
            while (text[length] && length != limit) length++;
            pad = ' ';
        } else if (*format == 'c') {
            buffer[length++] = (char)va_arg(values, int);
            pad = ' ';
        } else if (strchr("diuxXop", *format) && *format) {
            unsigned long long value;
            unsigned base = strchr("xXp", *format) ? 16 : *format == 'o' ? 8 : 10;
            if (*format == 'd' || *format == 'i') {
                long long number = longs > 1 ? va_arg(values, long long) : va_arg(values, int);
                sign = number < 0 ? '-' : plus;
                value = number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number;
            } else {
                value = longs > 1 ? va_arg(values, unsigned long long) : va_arg(values, unsigned);
            }
            length = digits(buffer, (unsigned)(value >> 32), (unsigned)value, base, *format == 'X' ? 'A' : 'a');
            reversed = 1;
        } else {
            if (*format == 0) break;
            buffer[length++] = *format;
        }
        width -= length + (sign != 0);
        if (!left && pad == ' ')
            while (width-- > 0) emit(sink, ' ');
        if (sign) emit(sink, sign);
        if (!left)
            while (width-- > 0) emit(sink, '0');
        for (int i = 0; i < length; i++) emit(sink, text[reversed ? length - 1 - i : i]);
        while (width-- > 0) emit(sink, ' ');
    }
}

int printf(const char *format, ...)
{
    struct sink sink = {0, 0, 0};
    va_list values;
    va_start(values, format);
    print(&sink, format, values);
    va_end(values);
    return (int)sink.count;
}

int snprintf(char *to, size_t size, const char *format, ...)
{
    char none;
    struct sink sink = {size ? to : &none, size, 0};
    va_list values;
    va_start(values, format);
    print(&sink, format, values);
    va_end(values);
    if (size) to[sink.count < size ? sink.count : size - 1] = 0;
    return (int)sink.count;
}

static int next_after_space(void)
{
    int c;
    do c = getchar();
    while (isspace(c));
    return c;
}

int scanf(const char *format, ...)
{
    va_list values;
    int found = 0, c = 0;
    va_start(values, format);
    for (; *format; format++) {
        int width = 0, kept = 1, longs = 0;
        if (isspace(*format)) {
            waiting = next_after_space();
            continue;
        }
        if (*format != '%') {
            c = getchar();
            if (c != *format) {
                waiting = c;
                break;
            }
            continue;
        }
        if (*++format == '*') {
            kept = 0;
            format++;
        }
        while (isdigit(*format)) width = 10 * width + *format++ - '0';
        for (; *format == 'l' || *format == 'h'; format++) longs += *format == 'l' ? 1 : -1;
        if (*format == 'c') {
            c = getchar();
            if (c == EOF) break;
            if (kept) *va_arg(values, char *) = (char)c;
        } else if (*format == 's') {
            char *to = kept ? va_arg(values, char *) : 0;
            c = next_after_space();
            if (c == EOF) break;
            for (int n = 0; c != EOF && !isspace(c) && (width == 0 || n < width); n++, c = getchar())
                if (to) *to++ = (char)c;
            waiting = c;
            if (to) *to = 0;
        } else {
            unsigned long long value = 0;
            unsigned base = *format == 'x' ? 16 : 10;
            int negative, some = 0;
            c = next_after_space();
            if (c == EOF) break;
            negative = c == '-';
            if (c == '-' || c == '+') c = getchar();
            for (;; some = 1, c = getchar()) {
                unsigned digit = isdigit(c) ? (unsigned)(c - '0') : isalpha(c) ? (unsigned)(tolower(c) - 'a' + 10) : 99;
                if (digit >= base) break;
                value = value * base + digit;
            }
            waiting = c;
            if (!some) {
                va_end(values);
                return found;
            }
            if (negative) value = 0 - value;
            if (kept && longs > 1) *va_arg(values, unsigned long long *) = value;
            else if (kept && longs == -1) *va_arg(values, unsigned short *) = (unsigned short)value;
            else if (kept && longs == -2) *va_arg(values, unsigned char *) = (unsigned char)value;
            else if (kept) *va_arg(values, unsigned *) = (unsigned)value;
        }
        found += kept;
    }
    va_end(values);
    return found == 0 && c == EOF ? EOF : found;
}

/* Memory and numbers */

extern char __heap[];
static char *heap = __heap;

void *malloc(size_t size)
{
    char *block = heap, *end = (char *)__builtin_frame_address(0) - 256;
    size = (size + 7) & ~(size_t)7;
    if (end < block || (size_t)(end - block) < size) return 0;
    heap += size;
    return block;
}

void *calloc(size_t count, size_t size)
{
    unsigned long long bytes = (unsigned long long)count * size;
    void *block = bytes >> 32 ? 0 : malloc((size_t)bytes);
    return block ? memset(block, 0, (size_t)bytes) : 0;
}

void free(void *block) { (void)block; }

int abs(int n) { return n < 0 ? -n : n; }

int atoi(const char *text)
{
    int value = 0, negative;
    while (isspace(*text)) text++;
    negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    while (isdigit(*text)) value = 10 * value + *text++ - '0';
    return negative ? -value : value;
}

static unsigned seed_now = 1;

void srand(unsigned seed) { seed_now = seed; }

int rand(void)
{
    seed_now ^= seed_now << 13;
    seed_now ^= seed_now >> 17;
    seed_now ^= seed_now << 5;
    return (int)(seed_now & RAND_MAX);
}

/* Compilers call these four by themselves. The loops must not become calls of the functions they are in. */
#define PLAIN __attribute__((noinline)) __attribute__((used))
#define STEP __asm__ volatile("" ::: "memory")

PLAIN void *memcpy(void *to, const void *from, size_t count)
{
    char *t = to;
    const char *f = from;
    for (; count; count--, t++, f++) {
        *t = *f;
        STEP;
    }
    return to;
}

PLAIN void *memmove(void *to, const void *from, size_t count)
{
    char *t = to;
    const char *f = from;
    if (t <= f) return memcpy(to, from, count);
    while (count--) {
        t[count] = f[count];
        STEP;
    }
    return to;
}

PLAIN void *memset(void *to, int byte, size_t count)
{
    char *t = to;
    for (; count; count--, t++) {
        *t = (char)byte;
        STEP;
    }
    return to;
}

PLAIN int memcmp(const void *a, const void *b, size_t count)
{
    const unsigned char *x = a, *y = b;
    for (; count; count--, x++, y++)
        if (*x != *y) return *x - *y;
    return 0;
}

size_t strlen(const char *text)
{
    size_t length = 0;
    while (text[length]) {
        length++;
        STEP;
    }
    return length;
}

int strcmp(const char *a, const char *b)
{
    for (; *a && *a == *b; a++, b++) { }
    return (unsigned char)*a - (unsigned char)*b;
}

int strncmp(const char *a, const char *b, size_t count)
{
    for (; count; count--, a++, b++)
        if (*a != *b || !*a) return (unsigned char)*a - (unsigned char)*b;
    return 0;
}

char *strcpy(char *to, const char *from)
{
    memcpy(to, from, strlen(from) + 1);
    return to;
}

char *strcat(char *to, const char *from)
{
    strcpy(to + strlen(to), from);
    return to;
}

char *strchr(const char *text, int c)
{
    for (; *text; text++)
        if (*text == (char)c) return (char *)text;
    return c == 0 ? (char *)text : 0;
}
