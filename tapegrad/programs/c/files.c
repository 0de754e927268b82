/* Characters to and from the three standard files. */

LIBRARY FILE __standard_files[3] = {{0}, {1}, {2}};

static int waiting = EOF;  /* a character that was given back */
#ifdef TAPEGRAD_FEOF
static int ended;  /* whether the end of the input was seen */
#define SET_ENDED(value) (ended = (value))
#else
static const int ended = 0;
#define SET_ENDED(value) ((void)0)
#endif

static int next_byte(void)
{
    unsigned char c;
    if (waiting != EOF) {
        int first = waiting;
        waiting = EOF;
        return first;
    }
    int some = system_call(63, 0, (long)&c, 1) == 1;
    SET_ENDED(!some);
    return some ? c : EOF;
}

static void give_back(int c)
{
    if (c != EOF) waiting = (unsigned char)c;
}

static int put_byte(int file, int c)
{
    unsigned char byte = (unsigned char)c;
    return put_bytes(file, &byte, 1) == 1 ? byte : EOF;
}

LIBRARY int getchar(void) { return next_byte(); }

LIBRARY int getc(FILE *file) { return file->number ? EOF : next_byte(); }

LIBRARY int fgetc(FILE *file) { return file->number ? EOF : next_byte(); }

LIBRARY int ungetc(int c, FILE *file)
{
    if (file->number || waiting != EOF) return EOF;
    give_back(c);
    if (c != EOF) SET_ENDED(0);
    return c;
}

LIBRARY char *fgets(char *to, int size, FILE *file)
{
    int count = 0, c = 0;
    if (file->number) return 0;
    while (count + 1 < size && c != '\n' && (c = next_byte()) != EOF) to[count++] = (char)c;
    if (count == 0 && c == EOF) return 0;
    to[count] = 0;
    return to;
}

LIBRARY size_t fread(void *to, size_t size, size_t count, FILE *file)
{
    size_t bytes = 0, wanted = size * count;
    int c;
    if (file->number) return 0;
    while (bytes < wanted && (c = next_byte()) != EOF) ((char *)to)[bytes++] = (char)c;
    return size ? bytes / size : 0;
}

LIBRARY int feof(FILE *file) { return file->number == 0 && ended && waiting == EOF; }

LIBRARY int ferror(FILE *file) { return (void)file, 0; }

LIBRARY void clearerr(FILE *file)
{
    if (!file->number) SET_ENDED(0);
}

LIBRARY int putchar(int c) { return put_byte(1, c); }

LIBRARY int putc(int c, FILE *file) { return put_byte(file->number, c); }

LIBRARY int fputc(int c, FILE *file) { return put_byte(file->number, c); }

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length]) {
        length++;
        STEP;
    }
    return length;
}

LIBRARY int puts(const char *text)
{
    put_bytes(1, text, length_of(text));
    return put_byte(1, '\n');
}

LIBRARY int fputs(const char *text, FILE *file) { return put_bytes(file->number, text, length_of(text)) < 0 ? EOF : 0; }

LIBRARY size_t fwrite(const void *from, size_t size, size_t count, FILE *file)
{
    return put_bytes(file->number, from, size * count) < 0 ? 0 : count;
}

LIBRARY void perror(const char *text)
{
    const char *const parts[] = {text ? text : "", text ? ": " : "", error_text(errno), "\n"};
    for (int i = 0; i < 4; i++) put_bytes(2, parts[i], length_of(parts[i]));
}

static FILE *no_file(const char *name, const char *mode)
{
    (void)name, (void)mode;
    errno = ENOENT;
    return 0;
}

LIBRARY FILE *fopen(const char *name, const char *mode) { return no_file(name, mode); }

LIBRARY FILE *freopen(const char *name, const char *mode, FILE *file) { return (void)file, no_file(name, mode); }

LIBRARY int fseek(FILE *file, long offset, int from) { return (void)file, (void)offset, (void)from, -1; }

LIBRARY long ftell(FILE *file) { return (void)file, -1; }

LIBRARY void rewind(FILE *file) { (void)file; }

LIBRARY int remove(const char *name) { return no_file(name, "") ? 0 : -1; }

LIBRARY int fclose(FILE *file) { return (void)file, 0; }

LIBRARY int fflush(FILE *file) { return (void)file, 0; }

LIBRARY int setvbuf(FILE *file, char *buffer, int mode, size_t size) { return (void)file, (void)buffer, (void)mode, (void)size, 0; }

LIBRARY void setbuf(FILE *file, char *buffer) { (void)file, (void)buffer; }

LIBRARY void __assertion_failed(const char *text, const char *file, int line)
{
    static const char *const said[] = {": assertion failed: ", "\n"};
    char number[12], *digit = number + sizeof number;
    *--digit = 0;
    do *--digit = (char)('0' + line % 10);
    while (line /= 10);
    *--digit = ':';
    const char *const parts[] = {file, digit, said[0], text, said[1]};
    for (int i = 0; i < 5; i++) put_bytes(2, parts[i], length_of(parts[i]));
    stop(134);
}
