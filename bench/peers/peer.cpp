#include "peer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <sys/resource.h>

extern "C" {
#include "host/heap.h"
}

namespace peer
{
namespace
{

constexpr double trial_seconds = 0.03; // for each way, at least three samples of it
constexpr int trial_samples = 3;

double read_clock(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double seconds_now() { return read_clock(CLOCK_MONOTONIC); }

long interruptions()
{
    rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

struct Sample {
    double seconds; // for one call; with one thread, of the processor's time if it was disturbed
    double heap_calls;
    bool disturbed;
};

Sample time_calls(const Way &way, size_t calls, int threads)
{
    long before = interruptions();
    heap_counts heap = heap_now();
    double own = read_clock(CLOCK_PROCESS_CPUTIME_ID), start = seconds_now();
    for (size_t i = 0; i < calls; i++)
        way.call();
    double seconds = seconds_now() - start;
    own = read_clock(CLOCK_PROCESS_CPUTIME_ID) - own;
    double heap_calls = (double)(heap_now().calls - heap.calls);
    bool disturbed = interruptions() != before;
    return {(disturbed && threads == 1 ? own : seconds) / (double)calls, heap_calls / (double)calls,
            disturbed};
}

size_t calls_in(double seconds, double call_seconds)
{
    return call_seconds > 0 && seconds > call_seconds ? (size_t)std::ceil(seconds / call_seconds) : 1;
}

struct Server {
    int threads;
    const Makers &makers;
    std::vector<Way> way = {}; // the best alone
    double call_seconds = 0;

    // The best time of a call.
    double tried(const Way &one) const
    {
        one.call();
        double best = time_calls(one, 1, threads).seconds, end = seconds_now() + trial_seconds;
        for (int i = 0; i < trial_samples || seconds_now() < end; i++)
            best = std::min(best, time_calls(one, calls_in(trial_seconds / 10, best), threads).seconds);
        return best;
    }

    std::string prepare(std::istringstream &line)
    {
        way.clear();
        std::string name, kind;
        line >> name >> kind;
        Sizes sizes;
        for (long size; line >> size;)
            sizes.push_back(size);
        auto maker = makers.find(kind);
        if (maker == makers.end())
            return "no it has nothing of that kind";
        std::vector<Way> ways = maker->second(sizes);
        for (Way &one : ways) {
            double seconds = tried(one);
            if (way.empty() || seconds < call_seconds) {
                call_seconds = seconds;
                way.assign(1, one);
            }
        }
        return way.empty() ? "no it cannot do that" : "ok " + way[0].name;
    }

    std::string sample(std::istringstream &line)
    {
        double ns = 0;
        line >> ns;
        for (size_t i = calls_in(0.25e-9 * ns, call_seconds); i > 0; i--)
            way[0].call();
        Sample taken = time_calls(way[0], calls_in(1e-9 * ns, call_seconds), threads);
        call_seconds = std::min(call_seconds, taken.seconds);
        char text[96];
        std::snprintf(text, sizeof text, "%.3f %.3f %d", 1e9 * taken.seconds, taken.heap_calls,
                      taken.disturbed);
        return text;
    }

    std::string result(std::istringstream &line)
    {
        int index = 0;
        std::string path;
        line >> index >> path;
        if (!way[0].result)
            return "no result to be had";
        way[0].call();
        Floats values = way[0].result(index);
        std::ofstream file(path, std::ios::binary);
        file.write((const char *)values.data(), (std::streamsize)(values.size() * sizeof(float)));
        file.close();
        return file ? "ok" : "no file can be written there";
    }

    std::string answer(const std::string &text)
    {
        std::istringstream line(text);
        std::string command;
        line >> command;
        if (command == "prepare")
            return prepare(line);
        if (way.empty())
            return "no row is prepared";
        if (command == "sample")
            return sample(line);
        if (command == "result")
            return result(line);
        if (command == "drop") {
            way.clear();
            return "ok";
        }
        return "no such command";
    }
};

} // namespace

Floats numbers(size_t count, int index)
{
    Floats values(count);
    uint32_t state = (uint32_t)(index + 1) * 2654435761u + 1u;
    for (float &value : values) {
        state = state * 1664525u + 1013904223u;
        value = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
    return values;
}

std::shared_ptr<float> aligned(size_t count)
{
    size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
    void *block = std::aligned_alloc(64, bytes);
    if (block == nullptr)
        throw std::bad_alloc();
    std::memset(block, 0, bytes);
    return std::shared_ptr<float>((float *)block, std::free);
}

std::shared_ptr<float> aligned(const Floats &values)
{
    std::shared_ptr<float> block = aligned(values.size());
    std::copy(values.begin(), values.end(), block.get());
    return block;
}

int serve(const std::string &version, int threads, const Makers &makers)
{
    Server server{threads, makers};
    std::cout << version << "\nready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        std::string answer;
        try {
            answer = server.answer(line);
        } catch (const std::exception &problem) {
            answer = std::string("no ") + problem.what();
        }
        std::cout << answer << std::endl;
    }
    return 0;
}

} // namespace peer
