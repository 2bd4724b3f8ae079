/* GELU where a vector can look numbers up; for vmath.h. */
#ifndef MICA_SRC_KERNEL_VMATH_GELU_H
#define MICA_SRC_KERNEL_VMATH_GELU_H

#if defined(VF_LOOKUP)

#define VMATH_GELU_PIECES 5.5f  /* per unit of x */
#define VMATH_GELU_NEAR   -5.5f /* from here on there are pieces */

/* x Phi(x) = max(x, 0) - t Q(t), t = |x|: Q, the upper tail, by polynomials in 5.5 t - k, one for each k to 30. What is
 * above has the last one, 0. Half the work of what reaches further down, and relative errors of 2^-24. */
VF_INLINE vf vmath_gelu_near(vf x)
{
    static const _Alignas(64) float q[7][32] = {
        {0x1p-1f,         0x1.b621a4p-2f,  0x1.6ea888p-2f,  0x1.2bbeeap-2f,
         0x1.de44bp-3f,   0x1.74057ap-3f,  0x1.19ebap-3f,   0x1.9ffaacp-4f,
         0x1.2a96a4p-4f,  0x1.a0d2c4p-5f,  0x1.1ac5dcp-5f,  0x1.74bcf8p-6f,
         0x1.dd2686p-7f,  0x1.287e8p-7f,   0x1.659d8ep-8f,  0x1.a283b2p-9f,
         0x1.db1c96p-10f, 0x1.058c18p-10f, 0x1.173924p-11f, 0x1.20ffacp-12f,
         0x1.21f224p-13f, 0x1.19f04cp-14f, 0x1.09ad7ap-15f, 0x1.e52cf4p-17f,
         0x1.ad38d8p-18f, 0x1.6fde98p-19f, 0x1.316b7cp-20f, 0x1.eb3c08p-22f,
         0x1.7ea0fap-23f, 0x1.20a55ap-24f, 0x1.a5c04p-26f,  0.0f},
        {-0x1.291a6cp-4f,  -0x1.243b96p-4f,  -0x1.161866p-4f,  -0x1.00094ap-4f,
         -0x1.c81fa6p-5f,  -0x1.891384p-5f,  -0x1.47ba7cp-5f,  -0x1.085bfep-5f,
         -0x1.9c9e42p-6f,  -0x1.378a7ep-6f,  -0x1.c72692p-7f,  -0x1.41ab1ap-7f,
         -0x1.b7e164p-8f,  -0x1.22fcc4p-8f,  -0x1.747752p-9f,  -0x1.cd41acp-10f,
         -0x1.1451c8p-10f, -0x1.404c2ap-11f, -0x1.6733bap-12f, -0x1.85bbaap-13f,
         -0x1.991bdap-14f, -0x1.9f7bb8p-15f, -0x1.983c72p-16f, -0x1.841278p-17f,
         -0x1.64e888p-18f, -0x1.3d92c6p-19f, -0x1.11628ap-20f, -0x1.c7626ep-22f,
         -0x1.6ef0a4p-23f, -0x1.1e0f04p-24f, -0x1.af81e4p-26f, 0.0f},
        {0x1.117266p-30f, 0x1.352bc8p-10f, 0x1.263db6p-9f,  0x1.96462ep-9f,
         0x1.e2854cp-9f,  0x1.03e27p-8f,   0x1.040056p-8f,  0x1.e963e4p-9f,
         0x1.b47f64p-9f,  0x1.72c42p-9f,   0x1.2cec2ep-9f,  0x1.d3e1f4p-10f,
         0x1.5cfee4p-10f, 0x1.f43404p-11f, 0x1.58c298p-11f, 0x1.c970f4p-12f,
         0x1.244e48p-12f, 0x1.6801aap-13f, 0x1.ab7af8p-14f, 0x1.e9944ep-15f,
         0x1.0e7cp-15f,   0x1.206f7cp-16f, 0x1.28e5dp-17f,  0x1.271022p-18f,
         0x1.1b2afp-19f,  0x1.0674ep-20f,  0x1.d5f3bep-22f, 0x1.9675a8p-23f,
         0x1.53a5a6p-24f, 0x1.123d1ep-25f, 0x1.abf0cep-27f, 0.0f},
        {0x1.a319aap-12f,  0x1.8e8b28p-12f,  0x1.546b16p-12f,  0x1.fb502p-13f,
         0x1.2f05e4p-13f,  0x1.80d47cp-15f,  -0x1.5f881ep-15f, -0x1.ce4c0ep-14f,
         -0x1.44a332p-13f, -0x1.709d98p-13f, -0x1.7212dp-13f,  -0x1.544642p-13f,
         -0x1.23a2fcp-13f, -0x1.d6a1e2p-14f, -0x1.67d2f6p-14f, -0x1.05c81ap-14f,
         -0x1.6b922ep-15f, -0x1.e309f8p-16f, -0x1.337e8ap-16f, -0x1.77a60ep-17f,
         -0x1.b8d23ap-18f, -0x1.f154ccp-19f, -0x1.0de82ep-19f, -0x1.1a052ap-20f,
         -0x1.1bd058p-21f, -0x1.133564p-22f, -0x1.013abep-23f, -0x1.cfa36cp-25f,
         -0x1.92ff22p-26f, -0x1.51ebeep-27f, -0x1.116abep-28f, 0.0f},
        {-0x1.b59b2cp-27f, -0x1.6454dep-17f, -0x1.647d5ap-16f, -0x1.84c7aep-16f,
         -0x1.ae5372p-16f, -0x1.8d1f48p-16f, -0x1.2ded5ap-16f, -0x1.d77926p-17f,
         -0x1.229b2ap-17f, -0x1.869184p-19f, 0x1.20368ap-19f,  0x1.4721cp-18f,
         0x1.b21c28p-18f,  0x1.ced836p-18f,  0x1.a8e52p-18f,   0x1.679858p-18f,
         0x1.191418p-18f,  0x1.9e9d5p-19f,   0x1.228762p-19f,  0x1.823fb8p-20f,
         0x1.e7ea9ep-21f,  0x1.26314cp-21f,  0x1.5492a6p-22f,  0x1.78dcc2p-23f,
         0x1.903a9ap-24f,  0x1.98d12cp-25f,  0x1.909cbcp-26f,  0x1.79ea18p-27f,
         0x1.57147p-28f,   0x1.2bb42p-29f,   0x1.f8ae52p-31f,  0.0f},
        {-0x1.1a5e52p-19f, -0x1.dcf494p-20f, -0x1.8e9c04p-20f, -0x1.614f26p-21f,
         0x1.5b5bdp-29f,   0x1.352d82p-21f,  0x1.103f4cp-20f,  0x1.4dd234p-20f,
         0x1.385804p-20f,  0x1.166c28p-20f,  0x1.97a2b2p-21f,  0x1.dc0cc6p-22f,
         0x1.8db0a2p-23f,  -0x1.00ff94p-25f, -0x1.4ff7e8p-23f, -0x1.d57956p-23f,
         -0x1.e9c24cp-23f, -0x1.b92658p-23f, -0x1.657612p-23f, -0x1.0cdb9cp-23f,
         -0x1.78883ap-24f, -0x1.f15a82p-25f, -0x1.36e5fp-25f,  -0x1.71ec8cp-26f,
         -0x1.a3a9f2p-27f, -0x1.c699e2p-28f, -0x1.d7793ep-29f, -0x1.d49674p-30f,
         -0x1.be85fep-31f, -0x1.98dcbp-32f,  -0x1.676f34p-33f, 0.0f},
        {0x1.389c52p-25f,  0x1.3363dcp-19f,  0x1.10e86ap-17f,  0x1.5ff70ap-22f,
         0x1.85f16ap-20f,  -0x1.65077cp-24f, -0x1.0df5b8p-18f, -0x1.584a96p-22f,
         0x1.4c3bp-20f,    0x1.d0b816p-21f,  -0x1.20b48ep-21f, 0x1.9dc072p-25f,
         -0x1.2e1aa4p-24f, -0x1.0d229cp-22f, -0x1.5a95bcp-24f, -0x1.092f9ep-24f,
         0x1.219ad8p-26f,  0x1.ec0028p-26f,  0x1.0726dp-27f,   0x1.2f82eap-30f,
         0x1.1428e4p-28f,  0x1.631b94p-28f,  0x1.3b961ap-29f,  0x1.084628p-29f,
         0x1.66ae4cp-30f,  0x1.636bfap-31f,  0x1.be035cp-32f,  0x1.cd5e4ap-33f,
         0x1.c4852ep-34f,  0x1.c04d6cp-35f,  0x1.8c2728p-36f,  0.0f}};
    const vf magic = vf_set1(0x1.8p23f), pieces = vf_set1(VMATH_GELU_PIECES);
    vf t = vmath_at_most(vf_abs(x), 31.0f / VMATH_GELU_PIECES);
    vf shifted = vf_fma(t, pieces, magic);
    vi k = vf_bits(shifted);
    vf d = vf_fma(t, pieces, vf_sub(magic, shifted)), sum = vf_lookup(q[6], k);
    for (int power = 5; power >= 0; power--)
        sum = vf_fma(sum, d, vf_lookup(q[power], k));
    return vf_fnma(t, sum, vmath_at_least(x, -0.0f));
}

#endif

#endif
