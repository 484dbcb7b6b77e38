/* Fits of losses in C: the same formulas as in the modules that call them.
 *
 * Built as a plain shared library without Python or NumPy headers and called through ctypes on
 * arrays that NumPy owns.
 */
#include "irls.h"
#include "swaps.h"

EXPORT int64_t exactk_losses_version(void) { return 2; }
