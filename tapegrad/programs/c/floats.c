/* Floating-point numbers as text, and back. Printed digits are exact and rounded to even, whatever the number. */

static const unsigned powers_of_ten[] = {1,      10,      100,      1000,      10000,
                                         100000, 1000000, 10000000, 100000000, 1000000000};

#define WHOLE 36  /* words of nine digits before the point: 2^1024 has 309 digits */
#define WORDS (WHOLE + 121)  /* and behind it: 2^-1074 has 1,074 */

struct decimal {
    unsigned words[WORDS];  /* the highest first, each below 10^9 */
    int first, end;         /* of those that may be other than 0 */
};

static void decimal_from(struct decimal *number, unsigned long long mantissa, int exponent)
{
    unsigned *words = number->words;
    for (int i = 0; i < WORDS; i++) words[i] = 0;
    number->first = WHOLE, number->end = WHOLE;
    for (; mantissa; mantissa /= 1000000000) words[--number->first] = (unsigned)(mantissa % 1000000000);
    while (exponent > 0) {
        int bits = exponent < 29 ? exponent : 29;
        unsigned carry = 0;
        for (int i = number->end - 1; i >= number->first; i--) {
            unsigned long long more = ((unsigned long long)words[i] << bits) + carry;
            words[i] = (unsigned)(more % 1000000000);
            carry = (unsigned)(more / 1000000000);
        }
        if (carry) words[--number->first] = carry;
        exponent -= bits;
    }
    while (exponent < 0) {  /* 10^9 is a multiple of 2^9, so that halves stay digits */
        int bits = exponent > -9 ? -exponent : 9;
        unsigned carry = 0;
        for (int i = number->first; i < number->end; i++) {
            unsigned rest = words[i] & ((1u << bits) - 1);
            words[i] = (words[i] >> bits) + carry;
            carry = (1000000000u >> bits) * rest;
        }
        if (carry) words[number->end++] = carry;
        exponent += bits;
    }
    while (number->first < number->end && !words[number->first]) number->first++;
}

/* How high the first digit stands: 0 is the last before the point. */
static int leading(const struct decimal *number)
{
    int high = 8;
    if (number->first >= number->end) return 0;
    while (powers_of_ten[high] > number->words[number->first]) high--;
    return 9 * (WHOLE - 1 - number->first) + high;
}

static int digit_at(const struct decimal *number, int place)
{
    int word = WHOLE - 1, power = place;
    while (power < 0) power += 9, word++;
    for (; power >= 9; power -= 9) word--;
    return word < 0 || word >= WORDS ? 0 : (int)(number->words[word] / powers_of_ten[power] % 10);
}

/* Leaves so many digits behind the point; as many more before it, if that is negative. */
static void rounded(struct decimal *number, int digits)
{
    unsigned *words = number->words, step, rest;
    int word = WHOLE, odd, beyond = 0;
    for (; digits < 0; digits += 9) word--;
    for (; digits >= 9; digits -= 9) word++;
    if (word >= number->end) return;
    step = powers_of_ten[9 - digits];
    rest = words[word] % step;
    odd = (int)((digits ? words[word] / step : word ? words[word - 1] : 0) & 1);
    for (int i = word + 1; i < number->end; i++) beyond |= words[i] != 0, words[i] = 0;
    words[word] -= rest;
    if (rest > step / 2 || (rest == step / 2 && (beyond || odd))) {
        words[word] += step;
        while (word > 0 && words[word] >= 1000000000) {
            words[word] -= 1000000000;
            words[--word]++;
        }
    }
    number->first = 0, number->end = WORDS;
    while (number->first < number->end && !words[number->first]) number->first++;
}

union bits {
    double number;
    unsigned long long bits;
};

/* The sign of a text's digits, of which the first is not 0 and stands at `place`, less the number half-way between
   the double of these bits and the next. */
static int beside_middle(const char *digits, const char *end, int place, unsigned long long bits)
{
    struct decimal middle;
    int exponent = (int)(bits >> 52), lowest;
    unsigned long long mantissa = bits & 0xfffffffffffff;
    decimal_from(&middle, 2 * (exponent ? mantissa | 1ULL << 52 : mantissa) + 1, (exponent ? exponent : 1) - 1076);
    lowest = 9 * (WHOLE - middle.end);
    if (place != leading(&middle)) return place - leading(&middle);
    for (; digits < end; digits++) {
        int more = *digits - '0' - digit_at(&middle, place);
        if (*digits == '.') continue;
        if (more) return more;
        place--;
    }
    for (; place >= lowest; place--)
        if (digit_at(&middle, place)) return -1;
    return 0;
}

/* A text with decimals and an exponent, as the double that is nearest. Up to 15 digits and powers of ten up to 10^22
   are exact, and so is what one multiplication or division makes of them. Else that is near, and is moved until the
   digits lie between the two middles beside it, even numbers with their borders. */
static double float_in(const char *text, char **end)
{
    const unsigned long long infinite = 2047ULL << 52;
    const char *at = text, *first = 0, *behind;
    union bits value;
    unsigned long long digits = 0;
    int negative, some = 0, scale = 0, point = 0, place = 0, exact;
    while (isspace(*at)) at++;
    negative = *at == '-';
    if (*at == '-' || *at == '+') at++;
    for (; isdigit(*at) || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = 1;
            continue;
        }
        some = 1;
        if (!first && *at != '0') first = at;
        if (first) place += !point;
        else place -= point;
        if (digits < 1000000000000000000) {
            digits = 10 * digits + (unsigned)(*at - '0');
            scale -= point;
        } else {
            scale += !point;
        }
    }
    behind = at;
    if (some && (*at | 32) == 'e') {
        const char *sign = at + 1;
        int below = *sign == '-', exponent = 0;
        if (*sign == '-' || *sign == '+') sign++;
        if (isdigit(*sign)) {
            for (; isdigit(*sign); sign++) exponent = exponent < 99999 ? 10 * exponent + *sign - '0' : exponent;
            if (below) exponent = -exponent;
            scale += exponent;
            place += exponent;
            at = sign;
        }
    }
    if (end) *end = (char *)(some ? at : text);
    value.number = (double)digits;
    exact = digits >> 53 == 0 && scale >= -22 && scale <= 22;
    for (int left = scale < 0 ? -scale : scale; left && value.bits && value.bits < infinite;) {
        int part = left < 22 ? left : 22;
        double power = 1;
        left -= part;
        while (part--) power *= 10;
        value.number = scale < 0 ? value.number / power : value.number * power;
    }
    if (first && !exact) {
        int side;
        place--;  /* of the first digit */
        if (value.bits >= infinite) value.bits = infinite - 1;
        while (value.bits < infinite
               && ((side = beside_middle(first, behind, place, value.bits)) > 0 || (side == 0 && value.bits & 1)))
            value.bits++;
        while (value.bits
               && ((side = beside_middle(first, behind, place, value.bits - 1)) < 0 || (side == 0 && value.bits & 1)))
            value.bits--;
        if (!value.bits || value.bits == infinite) errno = ERANGE;
    }
    return negative ? -value.number : value.number;
}

/* The compiler's own conversions of long double, which has 113 digits, are larger than all else here. */
union quadruple {
    long double number;
    unsigned words[4];
};

static double shortened(long double number)
{
    union quadruple held = {number};
    union bits result;
    const unsigned *words = held.words;
    int exponent = (int)(words[3] >> 16 & 0x7fff) - 16383 + 1023;
    result.bits = (unsigned long long)(words[3] & 0xffff) << 36 | (unsigned long long)words[2] << 4 | words[1] >> 28;
    if (exponent >= 2047) {
        if (exponent < 0x7fff - 16383 + 1023) result.bits = 0;
        exponent = 2047;
    } else if (exponent <= 0) {
        exponent = 0, result.bits = 0;
    } else {
        result.bits += words[1] >> 27 & 1;  /* a carry goes on to the exponent, as it should */
    }
    result.bits += (unsigned long long)exponent << 52;
    result.bits |= (unsigned long long)(words[3] >> 31) << 63;
    return result.number;
}

static void lengthened(double number, long double *to)
{
    union bits held = {number};
    union quadruple *result = (union quadruple *)to;
    unsigned exponent = (unsigned)(held.bits >> 52 & 2047);
    if (exponent) exponent = exponent == 2047 ? 0x7fff : exponent + 16383 - 1023;
    result->words[0] = 0;
    result->words[1] = (unsigned)held.bits << 28;
    result->words[2] = (unsigned)(held.bits >> 4);
    result->words[3] = (unsigned)(held.bits >> 36 & 0xffff) | exponent << 16 | (unsigned)(held.bits >> 63) << 31;
}

LIBRARY double strtod(const char *text, char **end) { return float_in(text, end); }

LIBRARY float strtof(const char *text, char **end) { return (float)float_in(text, end); }

LIBRARY double atof(const char *text) { return float_in(text, 0); }
