/* Solves a Sudoku by trying and going back. Reads 81 characters, `.` or 0 for an empty cell; without input it
   solves one of its own. The exit code is 0 if there is a solution. */
#include <stdio.h>

#ifdef __riscv
#include <tapegrad.h>
TAPEGRAD_RAM(16384);
#endif

static const char own[] =
    "53..7...."
    "6..195..."
    ".98....6."
    "8...6...3"
    "4..8.3..1"
    "....2...6"
    ".6....28."
    "...419..5"
    ".......7.";

static unsigned char cells[81];
static unsigned short rows[9], columns[9], boxes[9];  /* the digits that are taken, as bits */

static void flip(int cell, int digit)
{
    int row = cell / 9, column = cell % 9;
    rows[row] ^= 1 << digit;
    columns[column] ^= 1 << digit;
    boxes[row / 3 * 3 + column / 3] ^= 1 << digit;
}

static int solve(int cell)
{
    while (cell < 81 && cells[cell]) cell++;
    if (cell == 81) return 1;
    int row = cell / 9, column = cell % 9;
    int taken = rows[row] | columns[column] | boxes[row / 3 * 3 + column / 3];
    for (int digit = 1; digit <= 9; digit++) {
        if (taken >> digit & 1) continue;
        cells[cell] = (unsigned char)digit;
        flip(cell, digit);
        if (solve(cell + 1)) return 1;
        flip(cell, digit);
    }
    cells[cell] = 0;
    return 0;
}

int main(void)
{
    int count = 0, c;
    while (count < 81 && (c = getchar()) != EOF)
        if ((c >= '0' && c <= '9') || c == '.') cells[count++] = c == '.' ? 0 : (unsigned char)(c - '0');
    if (count < 81)
        for (count = 0; count < 81; count++) cells[count] = own[count] == '.' ? 0 : (unsigned char)(own[count] - '0');
    for (int cell = 0; cell < 81; cell++)
        if (cells[cell]) flip(cell, cells[cell]);
    if (!solve(0)) {
        puts("no solution");
        return 1;
    }
    for (int cell = 0; cell < 81; cell++) {
        putchar('0' + cells[cell]);
        if (cell % 9 == 8) putchar('\n');
    }
    return 0;
}
