#ifndef TAPEGRAD_SETJMP_H
#define TAPEGRAD_SETJMP_H

typedef long jmp_buf[14];  /* ra, sp and s0 to s11 */
__attribute__((returns_twice)) int setjmp(jmp_buf place);
_Noreturn void longjmp(jmp_buf place, int value);

#endif
