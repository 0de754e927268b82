#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static jmp_buf place;
static void deep(int n) { if (n) deep(n - 1); else longjmp(place, 7); }
static void last(void) { puts("last"); }
static void before_last(void) { puts("before last"); }
static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int formatted(char *to, size_t size, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = vsnprintf(to, size, format, values);
    va_end(values);
    return length;
}
int main(int argc, char **argv)
{
    char text[64] = "the quick, brown fox", part[16], line[24], *end;
    int numbers[] = {5, -2, 9, 5, 0, 77, 3, -40}, a, b, key = 9;
    volatile int tries = 0;
    printf("%d %d %d\n", argc, argv[0] != NULL, argv[argc] == NULL);
    printf("[%.3d|%8.3d|%-8.3d|%+.2d|%.0d|%#x|%#o|%#X|%#x|%08.3d]\n", 7, 7, 7, 3, 0, 255, 8, 255, 0, -5);
    printf("[%hd|%hhd|%hu|%hhu|%lld|%llx|%jd|%zu|%td|%5c|%-5c|%*d|%-*d|%.*s|%5%]\n", 70000, 300, 70000, 300, LLONG_MIN,
           0x123456789abcdefLL, (intmax_t)-9, sizeof(int), (ptrdiff_t)4, 'a', 'b', 6, 1, -6, 2, 2, "abc");
    printf("[%" PRId64 "|%" PRIu32 "|%" PRIx8 "] %d%n", (int64_t)-1, (uint32_t)7, (uint8_t)200, INT_MIN, &a);
    printf(" %d\n", a);
    for (char *word = strtok(text, " ,"); word; word = strtok(NULL, " ,")) printf("<%s>", word);
    printf("%s %s %s\n", strstr("a needle", "need"), strrchr("path/to/it", '/'), strpbrk("hello world", "wo"));
    printf("%d %d %d ", (int)strspn("123abc", "0123456789"), (int)strcspn("abc,d", ","), memcmp("ab", "ac", 2) < 0);
    strcpy(part, "abc"); strncat(part, "defgh", 2); strncpy(line, "xy", 5);
    printf("%s %s%d %s %d\n", part, line, line[4], (char *)memchr("hello", 'l', 5), (int)strnlen("abc", 2));
    printf("%ld ", strtol("-0x1F!", &end, 0)); printf("%s %lu %ld ", end, strtoul("777", NULL, 8), strtol("zz", NULL, 36));
    printf("%lld ", strtoll("9223372036854775808", NULL, 10));
    printf("%d\n", errno == ERANGE);
    printf("%s\n", strerror(ERANGE));
    qsort(numbers, 8, sizeof *numbers, by_value);
    for (int i = 0; i < 8; i++) printf("%d ", numbers[i]);
    printf("%d %d\n", (int)((int *)bsearch(&key, numbers, 8, sizeof key, by_value) - numbers), div(-17, 5).rem);
    printf("%d ", sscanf("12:34 word 0x1f 017", "%d:%d %9s %i %i", &a, &b, part, &key, &numbers[0]));
    printf("%d %d %s %d %d ", a, b, part, key, numbers[0]);
    printf("%d %d ", sscanf("x", "%d", &a), sscanf("", "%d", &a));
    sscanf("key=val;123456", "%7[^=]=%9[a-z];%3d%n", part, line, &a, &b); printf("%s %s %d %d\n", part, line, a, b);
    int jumped = setjmp(place);
    if (++tries < 3) deep(5);
    printf("%d %d\n", jumped, tries);
    a = formatted(line, 8, "%s %d", "formatted", 12); printf("%d %s %d\n", a, line, sprintf(part, "%04x", 0xbe));
    void *blocks[8];
    for (int turn = 0; turn < 50; turn++) {
        for (int i = 0; i < 8; i++) {
            blocks[i] = malloc((size_t)(20 + 13 * i + turn));
            if (!blocks[i]) return 99;
            memset(blocks[i], i, (size_t)(20 + 13 * i + turn));
        }
        for (int i = 0; i < 8; i++) {
            unsigned char *block = blocks[i * 3 % 8];
            for (int k = 0; k < 20 + 13 * (i * 3 % 8) + turn; k++) assert(block[k] == i * 3 % 8);
            free(block);
        }
    }
    char *grown = strdup("grown");
    grown = realloc(grown, 300); memset(grown + 5, '!', 3); grown[8] = 0; puts(grown);
    while (fgets(line, sizeof line, stdin)) printf("%d:%s|", (int)strlen(line), line);
    printf("%d %d\n", feof(stdin) != 0, getchar());
    ungetc('q', stdin); fprintf(stdout, "%c%c%c ", getc(stdin), toupper('x'), tolower('Y'));
    printf("%d%d%d%d ", !!isxdigit('f'), !!ispunct('!'), !!isprint('\n'), !!iscntrl('\n'));
    printf("%d\n", fopen("no such file", "r") == NULL);
    fputs("to the file", stdout); fwrite("abc\n", 1, 4, stdout); fflush(stdout);
    atexit(last); atexit(before_last);
    bool done = true;
    return done ? 41 : 0;
}
