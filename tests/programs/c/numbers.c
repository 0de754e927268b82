/* Random numbers, long doubles, places beyond the standard files, and a main without a return. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void some(void)
{
    for (int i = 0; i < 40; i++) printf("%d ", rand());
    printf("\n");
}

struct person {
    char name[5];
    short age;
};
static int compared;

static int older(const void *a, const void *b)
{
    compared++;
    return ((const struct person *)a)->age > ((const struct person *)b)->age;
}

static void in_order(int count)
{
    struct person all[50];
    for (int i = 0; i < count; i++) all[i] = (struct person){"", (short)(rand() % 7)}, sprintf(all[i].name, "p%d", i);
    compared = 0;
    qsort(all, count, sizeof *all, older);
    for (int i = 0; i < count; i++) printf("%s %d, ", all[i].name, all[i].age);
    printf("%d compared\n", compared);
}

int main(void)
{
    unsigned seeds[] = {0, 1, 42, 3000000000u, (unsigned)-7};
    some();
    for (int i = 0; i < 5; i++) {
        srand(seeds[i]);
        some();
    }
    for (int count = 0; count < 50; count = count * 2 + 1) in_order(count);
    printf("%'d|%'12lu|%s\n", 1234567, 99999999ul, setlocale(LC_ALL, "C"));
    for (long double x = -2.75L; x < 400; x = x * 2 + 6) {
        printf("%.12Lg %.12Lg %.12Lg ", floorl(x), ceill(x), truncl(x));
        printf("%.12Lg %.12Lg %.12Lg\n", roundl(x), fabsl(x), fmodl(x, 1.5L));
        if (x <= 0) continue;
        printf("%.12Lg %.12Lg %.12Lg %.12Lg ", sqrtl(x), logl(x), log2l(x), log10l(x));
        printf("%.12Lg %.12Lg %.12Lg ", powl(x, 0.75L), cbrtl(x), hypotl(x, 1));
        printf("%.12Lg %.12Lg %.12Lg %.12Lg ", sinl(x), cosl(x), atan2l(x, 2), atanl(x));
        printf("%d %d\n", x < fmaxl(x, 5), x > fminl(x, 5));
    }
    printf("%.12Lg %.12Lg %.12Lg %.12Lg %.12Lg ", expl(1), exp2l(0.5L), tanl(1), asinl(0.5L), acosl(0.5L));
    printf("%.12Lg %.12Lg %.12Lg\n", sinhl(1), coshl(1), tanhl(1));
    double small[] = {-0.9, -1e-3, -1e-12, 0, 1e-12, 1e-5, 0.3, 1, 20};
    for (int i = 0; i < 9; i++) printf("%.12g %.12g\n", expm1(small[i]), log1p(small[i]));
    printf("%lld %lld %g %g\n", llround(2.5e10 + 0.5), llrint(-3.5), fdim(3, 1), fdim(1, 3));
    printf("%d %d\n", fopen("no/such/file", "r") == NULL, remove("no/such/file"));
    if (fseek(stdin, 0, SEEK_SET) && ftell(stdin) != 0) rewind(stdin);
}
