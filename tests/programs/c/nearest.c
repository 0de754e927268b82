#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    static char line[2000];
    char c = (char)200;
    printf("%d %d %d\n", c, c == (char)0xc8, CHAR_MIN);
    while (fgets(line, sizeof line, stdin)) {
        char *end;
        double x = strtod(line, &end);
        unsigned long long bits;
        memcpy(&bits, &x, 8);
        printf("%llx %d|%a|%.3a|%20.0a|%-25A|%+a|% a|%#.0a|%025.2a|%.15a|\n", bits, (int)(end - line), x, x, x, -x, x, x, x, x, x);
    }
    for (char next; (next = getchar()) != EOF;) putchar(next);
    return 0;
}
