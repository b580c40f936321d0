// Public: how a struct's list of fields (fields/*.def) becomes the struct. Each list stands once: the struct includes it, and so
// does whatever has to know where each field lies, such as the bindings.
#pragma once

// A member of a struct. In a list it is written HEADWISE_FIELD(type, name, default).
#define HEADWISE_MEMBER(type, name, value) type name = value;
