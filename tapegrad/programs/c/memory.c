/* Blocks of memory and texts. */

/* Compilers call these four by themselves. The loops must not become calls of the functions they are in. */
#define PLAIN __attribute__((weak, noinline, used))
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

LIBRARY void *memchr(const void *block, int byte, size_t count)
{
    for (const unsigned char *at = block; count; count--, at++)
        if (*at == (unsigned char)byte) return (void *)at;
    return 0;
}

LIBRARY size_t strnlen(const char *text, size_t most)
{
    size_t length = 0;
    while (length < most && text[length]) length++;
    return length;
}

LIBRARY size_t strlen(const char *text)
{
    size_t length = 0;
    while (text[length]) {
        length++;
        STEP;
    }
    return length;
}

static int compared(const char *a, const char *b, size_t most, int fold)
{
    for (; most; most--, a++, b++) {
        int x = (unsigned char)*a, y = (unsigned char)*b;
        if (fold) x = tolower(x), y = tolower(y);
        if (x != y || !x) return x - y;
    }
    return 0;
}

LIBRARY int strcmp(const char *a, const char *b) { return compared(a, b, (size_t)-1, 0); }

LIBRARY int strncmp(const char *a, const char *b, size_t count) { return compared(a, b, count, 0); }

LIBRARY int strcoll(const char *a, const char *b) { return compared(a, b, (size_t)-1, 0); }

LIBRARY int strcasecmp(const char *a, const char *b) { return compared(a, b, (size_t)-1, 1); }

LIBRARY int strncasecmp(const char *a, const char *b, size_t count) { return compared(a, b, count, 1); }

static char *put_text(char *to, const char *from, size_t most)
{
    for (; most && *from; most--) {
        *to++ = *from++;
        STEP;
    }
    return to;
}

static char *end_of(char *text)
{
    while (*text) text++;
    return text;
}

LIBRARY char *strcpy(char *to, const char *from)
{
    *put_text(to, from, (size_t)-1) = 0;
    return to;
}

LIBRARY char *strncpy(char *to, const char *from, size_t count)
{
    for (char *end = put_text(to, from, count); end < to + count; end++) {
        *end = 0;
        STEP;
    }
    return to;
}

LIBRARY char *strcat(char *to, const char *from)
{
    *put_text(end_of(to), from, (size_t)-1) = 0;
    return to;
}

LIBRARY char *strncat(char *to, const char *from, size_t count)
{
    *put_text(end_of(to), from, count) = 0;
    return to;
}

static int is_among(char c, const char *any)
{
    for (; *any; any++)
        if (*any == c) return 1;
    return 0;
}

static size_t span(const char *text, const char *any, int among)
{
    size_t length = 0;
    while (text[length] && is_among(text[length], any) == among) length++;
    return length;
}

LIBRARY size_t strspn(const char *text, const char *any) { return span(text, any, 1); }

LIBRARY size_t strcspn(const char *text, const char *any) { return span(text, any, 0); }

LIBRARY char *strpbrk(const char *text, const char *any)
{
    text += span(text, any, 0);
    return *text ? (char *)text : 0;
}

LIBRARY char *strchr(const char *text, int c)
{
    for (; *text != (char)c; text++)
        if (!*text) return 0;
    return (char *)text;
}

LIBRARY char *strrchr(const char *text, int c)
{
    const char *found = 0;
    do {
        if (*text == (char)c) found = text;
    } while (*text++);
    return (char *)found;
}

LIBRARY char *strstr(const char *text, const char *part)
{
    for (;; text++) {
        size_t same = 0;
        while (part[same] && text[same] == part[same]) same++;
        if (!part[same]) return (char *)text;
        if (!*text) return 0;
    }
}

static char *next_part(char *text, const char *between, char **rest)
{
    if (!text) text = *rest;
    text += span(text, between, 1);
    *rest = text + span(text, between, 0);
    if (text == *rest) return 0;
    if (**rest) *(*rest)++ = 0;
    return text;
}

LIBRARY char *strtok_r(char *text, const char *between, char **rest) { return next_part(text, between, rest); }

LIBRARY char *strtok(char *text, const char *between)
{
    static char *rest;
    return next_part(text, between, &rest);
}

static char *error_text(int number)
{
    switch (number) {
    case 0: return "Success";
    case ENOENT: return "No such file or directory";
    case ENOMEM: return "Cannot allocate memory";
    case EINVAL: return "Invalid argument";
    case EDOM: return "Numerical argument out of domain";
    case ERANGE: return "Numerical result out of range";
    default: return "Unknown error";
    }
}

LIBRARY char *strerror(int number) { return error_text(number); }

/* The heap: blocks with their size before them, one after the other. Free ones are in a list, in the order of
   their addresses, and grow together; the rest, up to the stack, is free as well. */

struct block {
    size_t size;  /* with this */
    struct block *next;
};
#define HEADER 8
#define DISTANCE 256  /* from the stack, at least, so that there is room to call something */

extern char __heap[];
static char *heap_end = __heap;
static struct block *free_blocks;

static void *allocated(size_t wanted)
{
    size_t size = wanted < 8 ? HEADER + 8 : (wanted + HEADER + 7) & ~(size_t)7;
    char *most = (char *)__builtin_frame_address(0) - DISTANCE;
    struct block *found;
    if (size < wanted) return 0;
    for (struct block **at = &free_blocks; *at; at = &(*at)->next) {
        found = *at;
        if (found->size < size) continue;
        if (found->size >= size + HEADER + 8) {
            struct block *rest = (struct block *)((char *)found + size);
            rest->size = found->size - size;
            rest->next = found->next;
            *at = rest;
            found->size = size;
        } else {
            *at = found->next;
        }
        return (char *)found + HEADER;
    }
    found = (struct block *)heap_end;
    if (most < heap_end || (size_t)(most - heap_end) < size) return 0;
    heap_end += size;
    __asm__ volatile("mv gp, %0" ::"r"(heap_end));
    found->size = size;
    return (char *)found + HEADER;
}

static void released(void *block)
{
    struct block *own = (struct block *)((char *)block - HEADER), **at = &free_blocks, *before = 0;
    if (!block) return;
    while (*at && *at < own) {
        before = *at;
        at = &before->next;
    }
    own->next = *at;
    *at = own;
    if (own->next && (char *)own + own->size == (char *)own->next) {
        own->size += own->next->size;
        own->next = own->next->next;
    }
    if (before && (char *)before + before->size == (char *)own) {
        before->size += own->size;
        before->next = own->next;
    }
}

LIBRARY void *malloc(size_t size) { return allocated(size); }

LIBRARY void free(void *block) { released(block); }

LIBRARY void *calloc(size_t count, size_t size)
{
    unsigned long long bytes = (unsigned long long)count * size;
    void *block = bytes >> 32 ? 0 : allocated((size_t)bytes);
    return block ? memset(block, 0, (size_t)bytes) : 0;
}

LIBRARY void *realloc(void *block, size_t size)
{
    size_t held = block ? ((struct block *)((char *)block - HEADER))->size - HEADER : 0;
    void *other;
    if (size <= held) return block;
    other = allocated(size);
    if (other && block) {
        memcpy(other, block, held);
        released(block);
    }
    return other;
}

LIBRARY char *strdup(const char *text)
{
    char *copy = allocated(strnlen(text, (size_t)-2) + 1);
    if (copy) *put_text(copy, text, (size_t)-1) = 0;
    return copy;
}
