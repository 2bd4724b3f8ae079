// A BLAS through its C interface: compiled for OpenBLAS, Debian's and PyPI's, for BLIS and for MKL.
#include <cstdlib>
#include <cstring>

#include "peer.hpp"

#if defined(PEER_BLIS)
#include <blis.h>
#endif
#if defined(PEER_MKL)
#include <mkl.h>
#else
#include <cblas.h>
#endif
#if defined(PEER_SCIPY) // OpenBLAS as SciPy has it: its names are its own
#define cblas_sgemm              scipy_cblas_sgemm64_
#define cblas_sgemv              scipy_cblas_sgemv64_
#define cblas_sger               scipy_cblas_sger64_
#define cblas_scopy              scipy_cblas_scopy64_
#define cblas_saxpy              scipy_cblas_saxpy64_
#define openblas_set_num_threads scipy_openblas_set_num_threads64_
#define openblas_get_config      scipy_openblas_get_config64_
#endif

using peer::aligned;
using peer::Floats;
using peer::numbers;
using peer::Sizes;
using peer::Way;

namespace
{

using Block = std::shared_ptr<float>;

Floats copied(const Block &block, size_t count) { return Floats(block.get(), block.get() + count); }

// C [M, N] = A [M, K] B [K, N]
std::vector<Way> product(const Sizes &size)
{
    int m = (int)size[0], n = (int)size[1], k = (int)size[2];
    Block c = aligned((size_t)(m * n)), a = aligned(numbers((size_t)(m * k), 1)),
          b = aligned(numbers((size_t)(k * n), 2));
    Way way{"sgemm", {}, {}};
    way.call = [=] {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, a.get(), k, b.get(), n, 0.0f,
                    c.get(), n);
    };
    way.result = [=](int) { return copied(c, (size_t)(m * n)); };
    return {way};
}

// A matrix of `rows` rows, column by column.
Floats turned(const Floats &matrix, int rows)
{
    Floats out(matrix.size());
    size_t columns = matrix.size() / (size_t)rows;
    for (size_t i = 0; i < (size_t)rows; i++)
        for (size_t j = 0; j < columns; j++)
            out[j * (size_t)rows + i] = matrix[i * columns + j];
    return out;
}

// y [M, N] = x [M, K] w [K, N] + b [N], where w lies row by row or column by column. The bias is laid down first, and
// added to.
std::vector<Way> dense_forward(const Sizes &size)
{
    int m = (int)size[0], n = (int)size[1], k = (int)size[2];
    Block y = aligned((size_t)(m * n)), x = aligned(numbers((size_t)(m * k), 1)),
          w = aligned(numbers((size_t)(k * n), 2)), wt = aligned(turned(numbers((size_t)(k * n), 2), k)),
          bias = aligned(numbers((size_t)n, 3));
    auto result = [=](int) { return copied(y, (size_t)(m * n)); };
    auto lay_bias = [=] {
        for (int i = 0; i < m; i++)
            std::memcpy(y.get() + i * n, bias.get(), (size_t)n * sizeof(float));
    };
    std::vector<Way> ways{{"sgemm",
                           [=] {
                               lay_bias();
                               cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, x.get(),
                                           k, w.get(), n, 1.0f, y.get(), n);
                           },
                           result},
                          {"sgemm, weights turned",
                           [=] {
                               lay_bias();
                               cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f, x.get(), k,
                                           wt.get(), k, 1.0f, y.get(), n);
                           },
                           result}};
    if (m == 1)
        ways.push_back({"sgemv",
                        [=] {
                            lay_bias();
                            cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1.0f, w.get(), n, x.get(), 1, 1.0f,
                                        y.get(), 1);
                        },
                        result});
    return ways;
}

// dx = dy wT, dw = xT dy, db = the sum of dy's rows
std::vector<Way> dense_backward(const Sizes &size)
{
    int m = (int)size[0], n = (int)size[1], k = (int)size[2];
    Block x = aligned(numbers((size_t)(m * k), 1)), w = aligned(numbers((size_t)(k * n), 2)),
          wt = aligned(turned(numbers((size_t)(k * n), 2), k)), dwt = aligned((size_t)(k * n)),
          dy = aligned(numbers((size_t)(m * n), 4)), dx = aligned((size_t)(m * k)),
          dw = aligned((size_t)(k * n)), db = aligned((size_t)n), ones = aligned(Floats((size_t)m, 1.0f));
    auto result = [=](int index) {
        return index == 5   ? copied(dx, (size_t)(m * k))
               : index == 6 ? copied(dw, (size_t)(k * n))
                            : copied(db, (size_t)n);
    };
    auto bias = [=] {
        if (m == 1)
            cblas_scopy(n, dy.get(), 1, db.get(), 1);
        else
            cblas_sgemv(CblasRowMajor, CblasTrans, m, n, 1.0f, dy.get(), n, ones.get(), 1, 0.0f, db.get(), 1);
    };
    std::vector<Way> ways{
        {"sgemm",
         [=] {
             cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, k, n, 1.0f, dy.get(), n, w.get(), n,
                         0.0f, dx.get(), k);
             cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, n, m, 1.0f, x.get(), k, dy.get(), n,
                         0.0f, dw.get(), n);
             bias();
         },
         result},
        {"sgemm, weights turned",
         [=] {
             cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, k, n, 1.0f, dy.get(), n, wt.get(), k,
                         0.0f, dx.get(), k);
             cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, k, m, 1.0f, dy.get(), n, x.get(), k,
                         0.0f, dwt.get(), k);
             bias();
         },
         [=](int index) { return index == 6 ? turned(copied(dwt, (size_t)(k * n)), n) : result(index); }}};
    if (m == 1)
        ways.push_back({"sgemv, sger",
                        [=] {
                            cblas_sgemv(CblasRowMajor, CblasNoTrans, k, n, 1.0f, w.get(), n, dy.get(), 1,
                                        0.0f, dx.get(), 1);
                            std::memset(dw.get(), 0, (size_t)(k * n) * sizeof(float));
                            cblas_sger(CblasRowMajor, k, n, 1.0f, x.get(), 1, dy.get(), 1, dw.get(), n);
                            bias();
                        },
                        result});
    return ways;
}

// w -= rate g, for each of so many tensors
std::vector<Way> sgd(const Sizes &size)
{
    int count = (int)size[0];
    std::vector<Block> w, g;
    for (long i = 0; i < size[1]; i++) {
        w.push_back(aligned(numbers((size_t)count, 0)));
        g.push_back(aligned(Floats((size_t)count, 0.01f)));
    }
    return {{"saxpy",
             [=] {
                 for (size_t i = 0; i < w.size(); i++)
                     cblas_saxpy(count, -1e-6f, g[i].get(), 1, w[i].get(), 1);
             },
             {}}};
}

} // namespace

int main(int argc, char **argv)
{
    int threads = argc > 1 ? std::atoi(argv[1]) : 1;
#if defined(PEER_BLIS)
    bli_thread_set_num_threads(threads);
    std::string version = std::string("BLIS ") + bli_info_get_version_str();
#elif defined(PEER_MKL)
    mkl_set_dynamic(0);
    mkl_set_num_threads(threads);
    MKLVersion told;
    mkl_get_version(&told);
    std::string version = "MKL " + std::to_string(told.MajorVersion) + "." +
                          std::to_string(told.MinorVersion);
#else
    openblas_set_num_threads(threads);
    std::string config = openblas_get_config(), version = config.substr(0, config.find(' ', 9));
#endif
    product({512, 512, 512})[0].call(); // its threads are there from the beginning
    return peer::serve(
        version, threads,
        {{"sgemm", product}, {"dense_fwd", dense_forward}, {"dense_bwd", dense_backward}, {"sgd", sgd}});
}
