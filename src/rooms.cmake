# Rooms are object libraries; lade_room(NAME LOWER...) declares one and what it may include.

function(lade_compile_options target)
  set_target_properties(${target} PROPERTIES C_STANDARD 17 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                        C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes
                         -Wmissing-prototypes -Wvla $<$<BOOL:${LADE_WERROR}>:-Werror>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include
                             ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE lade_cjson lade_xxhash Threads::Threads)
  if(LADE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-omit-frame-pointer
                           -fno-sanitize-recover=undefined)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  endif()
endfunction()

function(lade_room name)
  set(dir ${PROJECT_SOURCE_DIR}/src/${name})
  if(name STREQUAL "kernels")
    set(dir ${PROJECT_SOURCE_DIR}/kernels)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.c)
  list(FILTER sources EXCLUDE REGEX "comm_mpi\\.c$")
  set(closure ${name})
  foreach(lower IN LISTS ARGN)
    get_property(more GLOBAL PROPERTY lade_closure_${lower})
    list(APPEND closure ${more})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  set_property(GLOBAL PROPERTY lade_closure_${name} ${closure})
  set_property(GLOBAL APPEND PROPERTY lade_all_rooms ${name})
  if(NOT sources)
    return()
  endif()
  add_library(room_${name} OBJECT ${sources})
  lade_compile_options(room_${name})
endfunction()

# Compiles src/ROOM/FOLDER/*.json into the room as lade_FOLDER[] = {name, text, length}.
function(lade_embed room folder)
  file(GLOB data CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/${folder}/*.json)
  set(out ${PROJECT_BINARY_DIR}/${folder}_data.c)
  if(NOT TARGET room_${room})
    return()
  endif()
  add_custom_command(OUTPUT ${out} DEPENDS ${data} ${PROJECT_SOURCE_DIR}/src/embed.cmake
    COMMAND ${CMAKE_COMMAND} -DNAME=${folder} -DOUT=${out}
            -DDIR=${PROJECT_SOURCE_DIR}/src/${room}/${folder}
            -P ${PROJECT_SOURCE_DIR}/src/embed.cmake VERBATIM)
  target_sources(room_${room} PRIVATE ${out})
endfunction()

# lade_objects: all rooms, for the program and the tests.
function(lade_library)
  get_property(rooms GLOBAL PROPERTY lade_all_rooms)
  set(objects "")
  foreach(room IN LISTS rooms)
    if(TARGET room_${room})
      list(APPEND objects $<TARGET_OBJECTS:room_${room}>)
    endif()
  endforeach()
  add_library(lade_objects STATIC EXCLUDE_FROM_ALL ${objects})
  set_target_properties(lade_objects PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(lade_objects PUBLIC lade_cjson lade_xxhash Threads::Threads m)
  add_library(lade_mpi_objects STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/src/comm/comm_mpi.c)
  lade_compile_options(lade_mpi_objects)
  target_link_libraries(lade_mpi_objects PUBLIC MPI::MPI_C)

  # For other programs: liblade without MPI; liblade_mpi is the same with lade_comm_mpi_new.
  lade_shared(liblade lade ${objects})
  lade_shared(liblade_mpi lade_mpi ${objects} $<TARGET_OBJECTS:lade_mpi_objects>)
  target_link_libraries(liblade_mpi PRIVATE MPI::MPI_C)
  install(FILES include/lade.h include/lade_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

function(lade_shared target name)
  add_library(${target} SHARED ${ARGN})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} PREFIX lib LINKER_LANGUAGE C
                        VERSION ${PROJECT_VERSION} SOVERSION 0)
  target_link_libraries(${target} PRIVATE lade_cjson lade_xxhash Threads::Threads m)
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/lade.map)
  if(LADE_SANITIZE)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
