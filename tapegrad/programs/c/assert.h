/* Without an include guard: NDEBUG counts wherever the file is included. */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
_Noreturn void __assertion_failed(const char *text, const char *file, int line);
#define assert(condition) ((condition) ? (void)0 : __assertion_failed(#condition, __FILE__, __LINE__))
#endif
#ifndef __cplusplus
#undef static_assert
#define static_assert _Static_assert
#endif
