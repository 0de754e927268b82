#include <tapegrad.h>
