/* Prints the SHA-256 of the input (FIPS 180-4). The constants are the fractional parts of square and cube
   roots of primes, computed here in whole numbers. */
#include <stdint.h>
#include <stdio.h>

static uint32_t constants[64], state[8];
static unsigned char block[64];
static uint32_t words[64];

static uint32_t turned(uint32_t word, int by) { return word >> by | word << (32 - by); }

/* The first 32 bits of the fractional part of the square or cube root of a small number. */
static uint32_t fraction(uint32_t n, int cube)
{
    uint64_t root = 0;
    for (int bit = 34; bit >= 0; bit--) {
        uint64_t trial = root | (uint64_t)1 << bit;
        /* Is trial^k <= n 2^(32 k)? The product is formed from parts of 32 bits, the highest part last. */
        uint64_t a = (uint32_t)trial, b = trial >> 32;
        uint64_t low = a * a, middle = 2 * a * b, high = b * b;
        uint64_t carry = (low >> 32) + middle;
        uint32_t square[3] = {(uint32_t)low, (uint32_t)carry, (uint32_t)(high + (carry >> 32))};
        uint32_t power[5] = {square[0], square[1], square[2], 0, 0};
        int parts = 3, shift = 2;
        if (cube) {
            uint64_t sum = 0;
            uint32_t factor[2] = {(uint32_t)a, (uint32_t)b};
            for (int i = 0; i < 5; i++) {
                uint64_t next = 0;
                for (int j = 0; j < 2; j++)
                    if (i - j >= 0 && i - j < 3) {
                        uint64_t product = (uint64_t)factor[j] * square[i - j];
                        sum += (uint32_t)product;
                        next += product >> 32;
                    }
                power[i] = (uint32_t)sum;
                sum = (sum >> 32) + next;
            }
            parts = 5;
            shift = 3;
        }
        int larger = 0;
        for (int i = parts - 1; i > shift; i--) larger |= power[i] != 0;
        if (!larger) {
            int below = 0;
            for (int i = 0; i < shift; i++) below |= power[i] != 0;
            larger = shift < parts ? power[shift] > n || (power[shift] == n && below) : 0;
        }
        if (!larger) root = trial;
    }
    return (uint32_t)root;
}

static void prepare(void)
{
    int count = 0;
    for (uint32_t n = 2; count < 64; n++) {
        int prime = 1;
        for (uint32_t d = 2; d * d <= n; d++) prime &= n % d != 0;
        if (!prime) continue;
        if (count < 8) state[count] = fraction(n, 0);
        constants[count++] = fraction(n, 1);
    }
}

static void compress(void)
{
    uint32_t v[8];
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + words[i - 7] +
                   (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    for (int i = 0; i < 8; i++) v[i] = state[i];
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t first = v[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
                         constants[i] + words[i];
        uint32_t second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        for (int j = 7; j > 0; j--) v[j] = v[j - 1];
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

int main(void)
{
    uint32_t length = 0;
    int used = 0, c;
    prepare();
    while ((c = getchar()) != EOF) {
        block[used++] = (unsigned char)c;
        length++;
        if (used == 64) {
            compress();
            used = 0;
        }
    }
    block[used++] = 0x80;
    if (used > 56) {
        while (used < 64) block[used++] = 0;
        compress();
        used = 0;
    }
    while (used < 59) block[used++] = 0;
    block[59] = (unsigned char)(length >> 29);
    for (int i = 0; i < 4; i++) block[60 + i] = (unsigned char)(length << 3 >> (24 - 8 * i));
    compress();
    for (int i = 0; i < 8; i++) printf("%08x", (unsigned)state[i]);
    putchar('\n');
    return 0;
}
