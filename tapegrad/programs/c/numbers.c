/* Numbers, sorting and searching. */

LIBRARY int abs(int n) { return n < 0 ? -n : n; }

LIBRARY long labs(long n) { return n < 0 ? -n : n; }

LIBRARY long long llabs(long long n) { return n < 0 ? -n : n; }

LIBRARY div_t div(int a, int b) { return (div_t){a / b, a % b}; }

LIBRARY ldiv_t ldiv(long a, long b) { return (ldiv_t){a / b, a % b}; }

LIBRARY lldiv_t lldiv(long long a, long long b) { return (lldiv_t){a / b, a % b}; }

static unsigned digit_of(int c)
{
    return isdigit(c) ? (unsigned)(c - '0') : isalpha(c) ? (unsigned)(tolower(c) - 'a' + 10) : 99;
}

/* The size of a number in a text, and its sign. Where it is beyond `most`, it is that. */
static unsigned long long number_in(const char *text, char **end, int base, unsigned long long most, int *negative)
{
    const char *at = text;
    unsigned long long value = 0;
    int some = 0, over = 0;
    while (isspace(*at)) at++;
    *negative = *at == '-';
    if (*at == '-' || *at == '+') at++;
    if ((base == 0 || base == 16) && at[0] == '0' && (at[1] | 32) == 'x' && digit_of(at[2]) < 16) {
        at += 2;
        base = 16;
    }
    if (base == 0) base = *at == '0' ? 8 : 10;
    for (; digit_of(*at) < (unsigned)base; at++, some = 1) {
        unsigned long long more = value * (unsigned)base + digit_of(*at);
        over |= value >> 58 && (more - digit_of(*at)) / (unsigned)base != value;
        over |= more < value || more > most + *negative;
        value = more;
    }
    if (end) *end = (char *)(some ? at : text);
    if (over) errno = ERANGE;
    return over ? most + (most < ~0ULL && *negative) : value;
}

#define READS(type, name, most)                                                                          \
    LIBRARY type name(const char *text, char **end, int base)                                            \
    {                                                                                                    \
        int negative;                                                                                    \
        unsigned long long size = number_in(text, end, base, most, &negative);                          \
        return (type)(negative ? 0 - size : size);                                                       \
    }
READS(long, strtol, 0x7fffffff)
READS(unsigned long, strtoul, 0xffffffff)
READS(long long, strtoll, 0x7fffffffffffffff)
READS(unsigned long long, strtoull, 0xffffffffffffffff)

LIBRARY int atoi(const char *text)
{
    int value = 0, negative;
    while (isspace(*text)) text++;
    negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    while (isdigit(*text)) value = 10 * value + *text++ - '0';
    return negative ? -value : value;
}

LIBRARY long atol(const char *text)
{
    int negative;
    unsigned long long size = number_in(text, 0, 10, 0x7fffffff, &negative);
    return (long)(negative ? 0 - size : size);
}

LIBRARY long long atoll(const char *text)
{
    int negative;
    unsigned long long size = number_in(text, 0, 10, 0x7fffffffffffffff, &negative);
    return (long long)(negative ? 0 - size : size);
}

/* The numbers that programs get on Linux, so that they print the same here: each is the sum of the third and the
   31st before it, and its lowest bit is left out. The first 31 are powers of 16807 times the seed, and ten rounds
   are thrown away. */
#define BEFORE 31
static unsigned last_numbers[BEFORE];
static unsigned char newest;
static char seeded;

static unsigned next_number(void)
{
    newest = newest == BEFORE - 1 ? 0 : newest + 1;  /* in place of the 31st before */
    return last_numbers[newest] += last_numbers[newest < 3 ? newest + BEFORE - 3 : newest - 3];
}

static APART void begin_with(unsigned seed)
{
    long number = seed ? (long)seed : 1;
    for (int i = 0; i < BEFORE; i++) {
        last_numbers[i] = (unsigned)number;
        number = 16807 * (number % 127773) - 2836 * (number / 127773);  /* times 16807, modulo 2^31 - 1 */
        if (number < 0) number += 0x7fffffff;
    }
    seeded = 1;
    newest = 2;  /* numbers 31 to 33 are 0 to 2 once more */
    for (int i = 0; i < 10 * BEFORE; i++) next_number();
}

LIBRARY void srand(unsigned seed) { begin_with(seed); }

LIBRARY int rand(void)
{
    if (!seeded) begin_with(1);
    return (int)(next_number() >> 1);
}

/* By merging halves, as on Linux: equal items stay in their order, and items are compared in the same order there
   and here. Nothing but "greater" counts, for many programs compare with `return a > b`. The first half of a merge
   waits in a room of its own, on the stack. */
static void sorted(char *all, size_t count, size_t size, int (*compare)(const void *, const void *), char *room)
{
    size_t first = count / 2, second = count - first;
    char *left = room, *right = all + first * size;
    if (count < 2) return;
    sorted(all, first, size, compare, room);
    sorted(right, second, size, compare, room);
    memcpy(room, all, first * size);
    while (first && second) {
        char *next = compare(left, right) > 0 ? right : left;
        memcpy(all, next, size);
        all += size;
        if (next == right) {
            right += size;
            second--;
        } else {
            left += size;
            first--;
        }
    }
    memcpy(all, left, first * size);
}

LIBRARY void qsort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    char room[count / 2 * size + 1];
    sorted(items, count, size, compare, room);
}

LIBRARY void *bsearch(const void *key, const void *items, size_t count, size_t size,
                      int (*compare)(const void *, const void *))
{
    const char *first = items;
    while (count) {
        const char *middle = first + count / 2 * size;
        int order = compare(key, middle);
        if (order == 0) return (void *)middle;
        if (order > 0) {
            first = middle + size;
            count--;
        }
        count /= 2;
    }
    return 0;
}
