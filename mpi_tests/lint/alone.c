/*
 * The public header needs nothing before it, may come twice, and its
 * initializers initialize everything; as C and as C++.
 */
#include <lade.h>

#include <lade.h>

lade_options lade_alone_options = LADE_OPTIONS_INIT;
lade_err lade_alone_err = LADE_ERR_INIT;

int lade_alone_status(void);
int lade_alone_status(void)
{
    return LADE_OK;
}
