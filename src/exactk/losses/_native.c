/* Fits of losses in C: the same formulas as in the modules that call them.
 *
 * Built as a plain shared library without Python or NumPy headers and called through ctypes on
 * arrays that NumPy owns.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../native.h"
#include "irls.h"
#include "softmax.h"

EXPORT int64_t exactk_losses_version(void) { return 1; }
