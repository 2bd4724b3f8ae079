// What a peer's program is made of: it answers the lines that bench/serve.c describes, for its own library.
//
// For each kind of row it has a function that makes one or more ways to do the work, each with all that it needs
// ready. The ways are tried, and the fastest is the one that is measured: a peer is always shown at its best.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace peer
{

using Sizes = std::vector<long>;
using Floats = std::vector<float>;

struct Way {
    std::string name;
    std::function<void()> call;
    std::function<Floats(int)>
        result; // the tensor of that index in Mica's row, in Mica's layout; may be missing
};

using Maker = std::function<std::vector<Way>(const Sizes &)>;
using Makers = std::map<std::string, Maker>;

// The numbers that Mica's row has in its tensor of that index.
Floats numbers(size_t count, int index);

// Zeros at an address that suits vectors; owned by whoever holds it.
std::shared_ptr<float> aligned(size_t count);
std::shared_ptr<float> aligned(const Floats &values);

// Answers stdin until it ends.
int serve(const std::string &version, int threads, const Makers &makers);

} // namespace peer
