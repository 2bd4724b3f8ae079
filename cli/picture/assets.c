#include "cli/picture/assets.h"

#include "mica_picture_assets.h" /* made by the build */
