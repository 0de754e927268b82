/* What math.h has beyond the compiler's library, by textbook methods: good to about 15 digits. */

union parts {
    double number;
    unsigned long long bits;
};

LIBRARY double copysign(double x, double sign)
{
    union parts a = {x}, b = {sign};
    a.bits = (a.bits & ~0ULL >> 1) | (b.bits & 1ULL << 63);
    return a.number;
}

LIBRARY double modf(double x, double *whole)
{
    *whole = trunc(x);
    return __builtin_isinf(x) ? copysign(0, x) : copysign(x - *whole, x);
}

LIBRARY double ldexp(double x, int exponent)
{
    union parts power;
    for (; exponent > 1000 && x != 0; exponent -= 1000) x *= 0x1p1000;
    for (; exponent < -1000 && x != 0; exponent += 1000) x *= 0x1p-1000;
    power.bits = (unsigned long long)(exponent + 1023) << 52;
    return x * power.number;
}

LIBRARY double frexp(double x, int *exponent)
{
    union parts held = {x};
    int power = (int)(held.bits >> 52 & 2047);
    *exponent = 0;
    if (x == 0 || power == 2047) return x;
    if (power == 0) {  /* too small to be normal */
        held.number *= 0x1p60;
        power = (int)(held.bits >> 52 & 2047) - 60;
    }
    *exponent = power - 1022;
    held.bits = (held.bits & ~(2047ULL << 52)) | 1022ULL << 52;
    return held.number;
}

/* Beyond 2^52 all numbers are whole; adding it rounds to even. */
LIBRARY double rint(double x)
{
    double size = fabs(x);
    return size < 0x1p52 ? copysign(size + 0x1p52 - 0x1p52, x) : x;
}

LIBRARY double nearbyint(double x) { return rint(x); }

LIBRARY long lrint(double x) { return (long)rint(x); }

LIBRARY long lround(double x) { return (long)round(x); }

LIBRARY long long llrint(double x) { return (long long)rint(x); }

LIBRARY long long llround(double x) { return (long long)round(x); }

LIBRARY double fdim(double x, double y) { return x <= y ? 0 : x - y; }

/* The error of 1 + x, or of exp(x), in proportion to what is left of x, is that of the quotient. */
LIBRARY double log1p(double x)
{
    double sum = 1 + x;
    return sum == 1 || __builtin_isinf(x) ? x : log(sum) * x / (sum - 1);
}

LIBRARY double expm1(double x)
{
    double power = exp(x);
    if (power == 1 || __builtin_isinf(power)) return power == 1 ? x : power;
    return fabs(x) > 1 ? power - 1 : (power - 1) * x / log(power);
}

/* For a whole y by squaring, so that what can be exact is. */
LIBRARY double pow(double x, double y)
{
    double size = fabs(y), result = 1, sign = 1;
    if (y == 0 || x == 1) return 1;
    if (__builtin_isnan(x) || __builtin_isnan(y)) return x + y;
    if (size == trunc(size) && size < 1024) {
        double square = x;
        for (unsigned n = (unsigned)size; n; n >>= 1, square *= square)
            if (n & 1) result *= square;
        return y < 0 ? 1 / result : result;
    }
    if (x < 0) {
        if (size != trunc(size)) return __builtin_isinf(x) ? (y < 0 ? 0 : -x) : (x - x) / (x - x);
        if (size < 0x1p53 && size / 2 != trunc(size / 2)) sign = -1;
        x = -x;
    }
    if (x == 0) return y < 0 ? sign / x : sign * 0;
    if (x == 1) return sign;
    return sign * exp2(y * log2(x));
}

LIBRARY double cbrt(double x)
{
    double size = fabs(x), root;
    if (size == 0 || !__builtin_isfinite(x)) return x;
    root = exp2(log2(size) / 3);
    root -= (root * root * root - size) / (3 * root * root);
    root -= (root * root * root - size) / (3 * root * root);
    return copysign(root, x);
}

LIBRARY double hypot(double x, double y)
{
    double large = fmax(fabs(x), fabs(y)), small = fmin(fabs(x), fabs(y));
    if (__builtin_isinf(x) || __builtin_isinf(y)) return HUGE_VAL;
    if (large > 0x1p500 || (large < 0x1p-500 && large != 0)) {
        small /= large;
        return large * sqrt(1 + small * small);
    }
    return sqrt(large * large + small * small);
}

/* Up to tan(pi / 12), where 13 terms of the series are enough; above, by tan(a + pi / 6) and tan(pi / 2 - a). */
LIBRARY double atan(double x)
{
    double size = fabs(x), offset = 0, sum = 0, square;
    int inverted = size > 1;
    if (__builtin_isnan(x)) return x;
    if (inverted) size = 1 / size;
    if (size > 0.2679491924311227) {
        size = (size * 1.7320508075688772 - 1) / (1.7320508075688772 + size);
        offset = 0.5235987755982988;
    }
    square = size * size;
    for (int term = 25; term > 0; term -= 2) sum = 1.0 / term - square * sum;
    sum = offset + size * sum;
    return copysign(inverted ? M_PI_2 - sum : sum, x);
}

LIBRARY double atan2(double y, double x)
{
    double angle;
    if (__builtin_isnan(x) || __builtin_isnan(y)) return x + y;
    if (__builtin_isinf(x) && __builtin_isinf(y)) angle = M_PI_4;
    else if (x == 0 && y == 0) angle = 0;
    else angle = atan(fabs(y / x));
    if (__builtin_signbit(x)) angle = M_PI - angle;
    return copysign(angle, y);
}

LIBRARY double asin(double x) { return atan2(x, sqrt((1 - x) * (1 + x))); }

LIBRARY double acos(double x) { return atan2(sqrt((1 - x) * (1 + x)), x); }

LIBRARY double sinh(double x)
{
    double square = x * x, sum = 0;
    if (square > 1) return (exp(x) - exp(-x)) / 2;
    for (int term = 18; term > 0; term -= 2) sum = square / (term * (term + 1)) * (1 + sum);
    return x * (1 + sum);
}

LIBRARY double cosh(double x) { return (exp(x) + exp(-x)) / 2; }

LIBRARY double tanh(double x) { return fabs(x) > 20 ? copysign(1, x) : sinh(x) / cosh(x); }

#define FOR_FLOATS(name)                                                                                 \
    LIBRARY float name##f(float x) { return (float)name(x); }
#define FOR_TWO_FLOATS(name)                                                                             \
    LIBRARY float name##f(float x, float y) { return (float)name(x, y); }
FOR_FLOATS(cbrt)
FOR_FLOATS(asin)
FOR_FLOATS(acos)
FOR_FLOATS(atan)
FOR_FLOATS(sinh)
FOR_FLOATS(cosh)
FOR_FLOATS(tanh)
FOR_TWO_FLOATS(pow)
FOR_TWO_FLOATS(hypot)
FOR_TWO_FLOATS(atan2)

/* On RISC-V a long double has 128 bits, for which compilers' libraries have next to nothing: ziglang's fail. */
#define FOR_LONG(name)                                                                                   \
    LIBRARY long double name##l(long double x) { return name((double)x); }
#define FOR_TWO_LONG(name)                                                                               \
    LIBRARY long double name##l(long double x, long double y) { return name((double)x, (double)y); }
FOR_LONG(sqrt)
FOR_LONG(floor)
FOR_LONG(ceil)
FOR_LONG(trunc)
FOR_LONG(round)
FOR_LONG(exp)
FOR_LONG(exp2)
FOR_LONG(log)
FOR_LONG(log2)
FOR_LONG(log10)
FOR_LONG(sin)
FOR_LONG(cos)
FOR_LONG(tan)
FOR_LONG(cbrt)
FOR_LONG(asin)
FOR_LONG(acos)
FOR_LONG(atan)
FOR_LONG(sinh)
FOR_LONG(cosh)
FOR_LONG(tanh)
FOR_TWO_LONG(pow)
FOR_TWO_LONG(hypot)
FOR_TWO_LONG(atan2)
FOR_TWO_LONG(fmod)

LIBRARY long double fabsl(long double x) { return x < 0 ? -x : x; }

LIBRARY long double fmaxl(long double x, long double y) { return x < y || x != x ? y : x; }

LIBRARY long double fminl(long double x, long double y) { return y < x || x != x ? y : x; }
