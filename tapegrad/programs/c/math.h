/* Floating point is done by the compiler's library, in many instructions. It has all that stands in the first
   block below (ziglang's; others have none of it); the rest is in math.c. */
#ifndef TAPEGRAD_MATH_H
#define TAPEGRAD_MATH_H

#define M_E 2.7182818284590452354
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_LOG2E 1.44269504088896340736
#define M_LOG10E 0.43429448190325182765
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define HUGE_VAL __builtin_huge_val()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)

double sqrt(double x), fabs(double x), floor(double x), ceil(double x), trunc(double x), round(double x);
double exp(double x), exp2(double x), log(double x), log2(double x), log10(double x);
double sin(double x), cos(double x), tan(double x), fmod(double x, double y);
double fmax(double x, double y), fmin(double x, double y), fma(double x, double y, double z);
float sqrtf(float x), fabsf(float x), floorf(float x), ceilf(float x), truncf(float x), roundf(float x);
float expf(float x), exp2f(float x), logf(float x), log2f(float x), log10f(float x);
float sinf(float x), cosf(float x), tanf(float x), fmodf(float x, float y);
float fmaxf(float x, float y), fminf(float x, float y), fmaf(float x, float y, float z);

double pow(double x, double y), cbrt(double x), hypot(double x, double y);
double asin(double x), acos(double x), atan(double x), atan2(double y, double x);
double sinh(double x), cosh(double x), tanh(double x);
double modf(double x, double *whole), frexp(double x, int *exponent), ldexp(double x, int exponent);
double copysign(double x, double sign), rint(double x), nearbyint(double x);
long lround(double x), lrint(double x);
long long llround(double x), llrint(double x);
double fdim(double x, double y), expm1(double x), log1p(double x);
float powf(float x, float y), cbrtf(float x), hypotf(float x, float y);
float asinf(float x), acosf(float x), atanf(float x), atan2f(float y, float x);
float sinhf(float x), coshf(float x), tanhf(float x);

/* A long double is computed with as a double, but for the four operations. */
long double sqrtl(long double x), fabsl(long double x), floorl(long double x), ceill(long double x);
long double truncl(long double x), roundl(long double x), expl(long double x), exp2l(long double x);
long double logl(long double x), log2l(long double x), log10l(long double x), sinl(long double x);
long double cosl(long double x), tanl(long double x), cbrtl(long double x), asinl(long double x);
long double acosl(long double x), atanl(long double x), sinhl(long double x), coshl(long double x);
long double tanhl(long double x), powl(long double x, long double y), fmodl(long double x, long double y);
long double fmaxl(long double x, long double y), fminl(long double x, long double y);
long double hypotl(long double x, long double y), atan2l(long double y, long double x);

#endif
