#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static const double given[] = {
        0, -0.0, 0.5, 1.5, 2.5, 0.125, -9.995, 99.5, 999999.5, 0.00009999995, 1e5, 1e-5, 123456789.05, 1e22, 1e23,
        5e-324, 1.7976931348623157e308, -1234.5678e-20, 3.14159265358979, 1.0 / 3, 1e15 / 7, 2e9,
    };
    for (unsigned i = 0; i < sizeof given / sizeof *given; i++) {
        double x = given[i];
        printf("%f|%.0f|%.1f|%12.3f|%-12.2f|%+.3f|% 012.4f|%#.0f\n", x, x, x, x, x, x, x, x);
        printf("%e|%.0e|%.15e|%E|%12.3e|%-14.2e|\n", x, x, x, x, x, x);
        printf("%g|%.0g|%.3g|%.17g|%G|%10g|%-10g|\n", x, x, x, x, x, x, x);
    }
    printf("%f %5.1f %F %e %Lf\n", INFINITY, -INFINITY, INFINITY, INFINITY, (long double)-2.75);
    double a; float b; long double c; char word[8];
    while (scanf("%7s %lf %f %Lf", word, &a, &b, &c) == 4) printf("%s %.15g %.7g %.12Lg\n", word, a, b, c);
    printf("%.15g %.15g %d\n", strtod("12.5e3xyz", 0), atof(" -.25"), (int)strtof("1e2", 0));
    for (double x = -3; x <= 3; x += 0.375) {
        printf("%.9f %.9f %.9f %.9f %.9f ", sin(x), cos(x), exp(x), atan(x), tanh(x));
        printf("%.9f %.9f %.9f ", sinh(x), cbrt(x), atan2(x, -1));
        printf("%.0f %.0f %.0f %.0f %.0f ", floor(x), ceil(x), round(x), trunc(x), rint(x));
        printf("%.9f %.9f %.9f\n", sqrt(x * x + 1), pow(x * x, 0.3), fmod(x, 0.7));
    }
    int exponent; double whole, rest = modf(-3.75, &whole);
    printf("%d %d %.9f %.9f ", (int)pow(10, 6), (int)pow(-3, 5), pow(2.5, -3.5), log10(2));
    printf("%.3f %.1f %.4f ", rest, whole, frexp(-10.5, &exponent));
    printf("%d %.2f %.6f %.6f %.6f\n", exponent, ldexp(0.75, 5), asin(0.5), acos(-0.25), hypot(3, 4));
    return isnan(NAN) && isinf(INFINITY);
}
