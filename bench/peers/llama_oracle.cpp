// What llama.cpp says of a GGUF file: tokens, logits, greedy text, embeddings. Its CPU backend with plain settings.
//
//     llama_oracle tokenize MODEL [--special] [--bos] < TEXT     token numbers, one a line
//     llama_oracle logits MODEL --tokens FILE --out FILE         f32 [tokens, vocabulary], of every position
//     llama_oracle greedy MODEL --tokens FILE --count N          "TOKEN BEST SECOND": the two best logits of each step
//     llama_oracle embed MODEL < LINES                           a vector of unit length, one a line
//     llama_oracle bench MODEL --prompt N | --decode N           the best of --seconds S: "WALL PROCESSOR", seconds
//
// Options: --cache f16|f32, --context N (logits: the text is run in pieces of N tokens, each by itself), --threads N,
// --flash. Token files hold numbers with blanks between them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <llama.h>

namespace
{

struct Options {
    std::string verb, model, tokens, out;
    int count = 32, context = 0, threads = 1, prompt = 0, decode = 0;
    double seconds = 1;
    bool f32_cache = false, flash = false, special = false, bos = false;
};

[[noreturn]] void fail(const std::string &message)
{
    std::cerr << "llama_oracle: " << message << "\n";
    std::exit(1);
}

Options parse(int argc, char **argv)
{
    if (argc < 3)
        fail("usage: llama_oracle tokenize|logits|greedy|embed|bench MODEL [OPTIONS]");
    Options o;
    o.verb = argv[1];
    o.model = argv[2];
    for (int i = 3; i < argc; i++) {
        const std::string name = argv[i];
        auto value = [&]() -> std::string {
            return i + 1 < argc ? argv[++i] : (fail(name + " needs a value"), "");
        };
        if (name == "--tokens")
            o.tokens = value();
        else if (name == "--out")
            o.out = value();
        else if (name == "--count")
            o.count = std::stoi(value());
        else if (name == "--context")
            o.context = std::stoi(value());
        else if (name == "--threads")
            o.threads = std::stoi(value());
        else if (name == "--prompt")
            o.prompt = std::stoi(value());
        else if (name == "--decode")
            o.decode = std::stoi(value());
        else if (name == "--seconds")
            o.seconds = std::stod(value());
        else if (name == "--cache")
            o.f32_cache = value() == "f32";
        else if (name == "--flash")
            o.flash = true;
        else if (name == "--special")
            o.special = true;
        else if (name == "--bos")
            o.bos = true;
        else
            fail("there is no option " + name);
    }
    return o;
}

std::vector<llama_token> read_tokens(const std::string &path)
{
    std::ifstream file(path);
    std::vector<llama_token> tokens{std::istream_iterator<llama_token>(file), {}};
    if (tokens.empty() || !file.eof())
        fail(path + " does not hold token numbers");
    return tokens;
}

std::vector<llama_token> tokenize(const llama_model *model, const std::string &text, bool bos, bool special)
{
    std::vector<llama_token> tokens(text.size() + 8);
    const int count = llama_tokenize(llama_model_get_vocab(model), text.data(), (int)text.size(),
                                     tokens.data(), (int)tokens.size(), bos, special);
    if (count < 0)
        fail("more tokens than bytes");
    tokens.resize((size_t)count);
    return tokens;
}

llama_context *open_context(const Options &o, llama_model *model, int context, bool embed)
{
    llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t)context;
    params.n_batch = params.n_ubatch = embed ? (uint32_t)context : (uint32_t)std::min(context, 512);
    params.n_threads = params.n_threads_batch = o.threads;
    params.type_k = params.type_v = o.f32_cache ? GGML_TYPE_F32 : GGML_TYPE_F16;
    params.flash_attn_type = o.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.swa_full = true;
    params.embeddings = embed;
    llama_context *ctx = llama_init_from_model(model, params);
    if (!ctx)
        fail("no context of " + std::to_string(context) + " tokens");
    return ctx;
}

// Runs tokens at the end of the sequence; `each` gets the logits of every one of them, in order.
template <class Each>
void run(llama_context *ctx, const llama_token *tokens, size_t count, size_t place, bool all, Each each)
{
    const size_t most = llama_n_batch(ctx);
    llama_batch batch = llama_batch_init((int)most, 0, 1);
    for (size_t start = 0; start < count; start += most) {
        batch.n_tokens = (int)std::min(most, count - start);
        for (int i = 0; i < batch.n_tokens; i++) {
            batch.token[i] = tokens[start + (size_t)i];
            batch.pos[i] = (llama_pos)(place + start + (size_t)i);
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = all || start + (size_t)i + 1 == count;
        }
        if (llama_decode(ctx, batch))
            fail("llama_decode failed");
        for (int i = 0; i < batch.n_tokens; i++)
            if (batch.logits[i])
                each(llama_get_logits_ith(ctx, i));
    }
    llama_batch_free(batch);
}

void logits(const Options &o, llama_model *model)
{
    const std::vector<llama_token> tokens = read_tokens(o.tokens);
    const size_t piece = o.context ? (size_t)o.context : tokens.size();
    const size_t vocabulary = (size_t)llama_vocab_n_tokens(llama_model_get_vocab(model));
    llama_context *ctx = open_context(o, model, (int)piece, false);
    std::ofstream out(o.out, std::ios::binary);
    for (size_t start = 0; start < tokens.size(); start += piece) {
        llama_memory_clear(llama_get_memory(ctx), true);
        run(ctx, tokens.data() + start, std::min(piece, tokens.size() - start), 0, true,
            [&](const float *row) {
                out.write(reinterpret_cast<const char *>(row), (std::streamsize)(vocabulary * sizeof(float)));
            });
    }
    if (!out.flush())
        fail(o.out + " cannot be written");
    llama_free(ctx);
}

void greedy(const Options &o, llama_model *model)
{
    const std::vector<llama_token> prompt = read_tokens(o.tokens);
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    const int context = o.context ? o.context : (int)prompt.size() + o.count;
    llama_context *ctx = open_context(o, model, context, false);
    llama_token next = 0;
    auto choose = [&](const float *row) {
        next = (llama_token)(std::max_element(row, row + vocabulary) - row);
        float second = -INFINITY;
        for (int i = 0; i < vocabulary; i++)
            if (i != next)
                second = std::max(second, row[i]);
        std::printf("%d %.9g %.9g\n", next, (double)row[next], (double)second);
    };
    run(ctx, prompt.data(), prompt.size(), 0, false, choose);
    for (int step = 1; step < o.count; step++) {
        const llama_token token = next;
        run(ctx, &token, 1, prompt.size() + (size_t)step - 1, false, choose);
    }
    llama_free(ctx);
}

void embed(const Options &o, llama_model *model)
{
    const int width = llama_model_n_embd(model);
    llama_context *ctx = open_context(o, model, llama_model_n_ctx_train(model), true);
    for (std::string line; std::getline(std::cin, line);) {
        std::vector<llama_token> tokens = tokenize(model, line, true, false);
        llama_batch batch = llama_batch_get_one(tokens.data(), (int)tokens.size());
        if (llama_encode(ctx, batch))
            fail("llama_encode failed");
        const float *vector = llama_get_embeddings_seq(ctx, 0);
        if (!vector)
            fail("no embedding: does the model pool?");
        double sum = 0;
        for (int i = 0; i < width; i++)
            sum += (double)vector[i] * (double)vector[i];
        for (int i = 0; i < width; i++)
            std::printf("%.9g%c", (double)vector[i] / std::sqrt(sum), i + 1 < width ? ' ' : '\n');
    }
    llama_free(ctx);
}

// As llama-bench does it: a prompt into an empty cache, or tokens one after the other from an empty cache on, after one
// round that warms up. Of one thread, the time on the processor is what other programs disturb less.
void bench(const Options &o, llama_model *model)
{
    using clock = std::chrono::steady_clock;
    const int count = o.prompt ? o.prompt : o.decode;
    const auto vocabulary = (unsigned)llama_vocab_n_tokens(llama_model_get_vocab(model));
    llama_context *ctx = open_context(o, model, count, false);
    std::vector<llama_token> tokens((size_t)count);
    unsigned state = 1;
    for (llama_token &token : tokens)
        token = (llama_token)((state = state * 1664525u + 1013904223u) / 65536u % vocabulary);
    double wall = INFINITY, processor = INFINITY;
    const auto begun = clock::now();
    for (int round = 0; round < 3 || std::chrono::duration<double>(clock::now() - begun).count() < o.seconds;
         round++) {
        llama_memory_clear(llama_get_memory(ctx), true);
        const auto start = clock::now();
        const std::clock_t used = std::clock();
        if (o.prompt)
            run(ctx, tokens.data(), tokens.size(), 0, false, [](const float *) {});
        for (size_t i = 0; !o.prompt && i < tokens.size(); i++)
            run(ctx, &tokens[i], 1, i, false, [](const float *) {});
        if (round == 0)
            continue;
        processor = std::min(processor, (double)(std::clock() - used) / CLOCKS_PER_SEC);
        wall = std::min(wall, std::chrono::duration<double>(clock::now() - start).count());
    }
    std::printf("%.9g %.9g\n", wall, processor);
    llama_free(ctx);
}

} // namespace

int main(int argc, char **argv)
{
    const Options o = parse(argc, argv);
    llama_log_set(
        [](ggml_log_level level, const char *text, void *) { // what goes wrong, not how it goes
            if (level == GGML_LOG_LEVEL_ERROR)
                std::cerr << text;
        },
        nullptr);
    llama_backend_init();
    llama_model_params params = llama_model_default_params();
    params.vocab_only = o.verb == "tokenize";
    llama_model *model = llama_model_load_from_file(o.model.c_str(), params);
    if (!model)
        fail(o.model + " cannot be loaded");
    if (o.verb == "tokenize") {
        const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
        for (llama_token token : tokenize(model, text, o.bos, o.special))
            std::printf("%d\n", token);
    } else if (o.verb == "logits")
        logits(o, model);
    else if (o.verb == "greedy")
        greedy(o, model);
    else if (o.verb == "embed")
        embed(o, model);
    else if (o.verb == "bench" && (o.prompt > 0) != (o.decode > 0))
        bench(o, model);
    else
        fail("there is no verb " + o.verb);
    llama_model_free(model);
    llama_backend_free();
    return 0;
}
