/* The style sheets and scripts beside this file, which the build puts into the program: see cmake/embed.cmake. */
#ifndef MICA_CLI_PICTURE_ASSETS_H
#define MICA_CLI_PICTURE_ASSETS_H

extern const char asset_colours_css[];
extern const char asset_page_css[];
extern const char asset_plan_css[];
extern const char asset_report_css[];
extern const char asset_plan_js[];
extern const char asset_report_js[];

#endif
