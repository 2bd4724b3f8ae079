# mica_embed(HEADER FILE...): a header with the bytes of each file as a C string: page.css as asset_page_css.
function(mica_embed header)
  set(text "/* Made by the build. */\n")
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER asset_${name} name)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(REPLACE "'\\x0a'," "'\\x0a',\n" bytes "${bytes}") # a line each
    string(APPEND text "const char ${name}[] = {${bytes}0};\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(GENERATE OUTPUT ${header} CONTENT "${text}")
endfunction()
