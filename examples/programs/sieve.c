/* Prints the primes below 200, by the sieve of Eratosthenes. */
#include <stdio.h>

#define LIMIT 200

static unsigned char composite[LIMIT];

int main(void)
{
    for (int n = 2; n < LIMIT; n++) {
        if (composite[n]) continue;
        printf("%d ", n);
        for (int multiple = n * n; multiple < LIMIT; multiple += n) composite[multiple] = 1;
    }
    putchar('\n');
    return 0;
}
