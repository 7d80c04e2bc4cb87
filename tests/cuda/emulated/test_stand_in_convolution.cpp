// SPDX-License-Identifier: Apache-2.0
// The stand-ins for cuDNN's convolutions: small cases computed by hand, and what they refuse.
#include <cuda_fp16.h>

#include <string>
#include <vector>

#include "catch.hpp"
#include "cuda/device.hpp"
#include "cuda/emulated/device.hpp"
#include "cuda/emulated/stand_in_fixture.hpp"

namespace test_stand_in_convolution {

using namespace halfscope;
using namespace stand_in;

/// A 3 x 3 image of two channels and one 2 x 2 filter, all small integers.
struct SmallConvolution : Handle {
  explicit SmallConvolution(cudnnDataType_t type_ = CUDNN_DATA_HALF,
                            cudnnMathType_t math = CUDNN_FMA_MATH)
      : type(type_),
        x(type, 1, 3, 3, 2),
        y(type, 1, 2, 2, 1),
        w(type, 1, 2, 2, 2),
        convolution(0, 1, math) {}

  cudnnStatus_t forward(const Values& in, const Values& weights, const Values& out,
                        const float* alpha = &kOne, const float* beta = &kZero) const {
    return dnn().cudnnConvolutionForward(
        handle, alpha, x.descriptor, in.get(), w.descriptor, weights.get(), convolution.descriptor,
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, beta, y.descriptor, out.get());
  }

  cudnnDataType_t type;
  Tensor x, y;
  Filter w;
  Convolution convolution;
};

const Floats kImage = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60, 7, 70, 8, 80, 9, 90};
const Floats kWeights = {1, 0, 0, 1, 2, 0, 0, -1};  // (r, s, c)

template <class Performance>
std::vector<Performance> listed(cudnnStatus_t (*list)(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                      cudnnFilterDescriptor_t,
                                                      cudnnConvolutionDescriptor_t,
                                                      cudnnTensorDescriptor_t, int, int*,
                                                      Performance*),
                                const SmallConvolution& of) {
  std::vector<Performance> out(20);
  int count = 0;
  CHECK(list(of.handle, of.x.descriptor, of.w.descriptor, of.convolution.descriptor,
             of.y.descriptor, 20, &count, out.data()) == CUDNN_STATUS_SUCCESS);
  out.resize(static_cast<std::size_t>(count));
  return out;
}

TEST_CASE("a convolution computed by hand", "[emulated][libraries]") {
  for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT}) {
    const SmallConvolution small(type);
    const Values x(type, kImage), w(type, kWeights), y(type, {kNan, kNan, kNan, kNan});
    REQUIRE(small.forward(x, w, y) == CUDNN_STATUS_SUCCESS);
    // x0[p,q] + x1[p,q+1] + 2 x0[p+1,q] - x1[p+1,q+1]
    CHECK(y.floats() ==
          Floats{1 + 20 + 8 - 50, 2 + 30 + 10 - 60, 4 + 50 + 14 - 80, 5 + 60 + 16 - 90});
    REQUIRE(small.forward(x, w, y, &kTwo, &kOne) == CUDNN_STATUS_SUCCESS);
    CHECK(y.floats() == Floats{-63, -54, -36, -27});
  }
  CHECK(emulated::take_problems() == "");
  CHECK(emulated::bytes_allocated() == 0);
}

TEST_CASE("a convolution of NCHW tensors, padded and strided", "[emulated][libraries]") {
  const auto type = CUDNN_DATA_FLOAT;
  const Handle h;
  const Tensor x(type, 2, 3, 3, 1, CUDNN_TENSOR_NCHW), y(type, 2, 2, 2, 2, CUDNN_TENSOR_NCHW);
  const Filter w(type, 2, 3, 3, 1, CUDNN_TENSOR_NCHW);
  const Convolution convolution(1, 2);
  const Values in(type, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90});
  const Values out(type, Floats(16, kNan));
  const Values weights(type, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0});
  REQUIRE(dnn().cudnnConvolutionForward(h.handle, &kOne, x.descriptor, in.get(), w.descriptor,
                                        weights.get(), convolution.descriptor,
                                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                                        &kZero, y.descriptor, out.get()) == CUDNN_STATUS_SUCCESS);
  CHECK(out.floats() == Floats{12, 16, 24, 28, 1, 3, 7, 9, 120, 160, 240, 280, 10, 30, 70, 90});
}

TEST_CASE("the gradients of a convolution, by hand", "[emulated][libraries]") {
  const SmallConvolution s;
  const auto type = CUDNN_DATA_HALF;
  const Values x(type, kImage), w(type, kWeights), dy(type, {1, 0, 0, 100});
  const Values dx(type, Floats(18, kNan)), dw(type, Floats(8, 1));
  std::size_t bytes = 0;
  REQUIRE(dnn().cudnnGetConvolutionBackwardDataWorkspaceSize(
              s.handle, s.w.descriptor, s.y.descriptor, s.convolution.descriptor, s.x.descriptor,
              CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, &bytes) == CUDNN_STATUS_SUCCESS);
  const auto allocate_uninitialized = device::allocate<unsigned char>(bytes);
  const auto data_gradient = [&](std::size_t given) {
    return dnn().cudnnConvolutionBackwardData(
        s.handle, &kOne, s.w.descriptor, w.get(), s.y.descriptor, dy.get(),
        s.convolution.descriptor, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, allocate_uninitialized.get(),
        given, &kZero, s.x.descriptor, dx.get());
  };
  CHECK(data_gradient(bytes - 1) == CUDNN_STATUS_BAD_PARAM);
  REQUIRE(data_gradient(bytes) == CUDNN_STATUS_SUCCESS);
  CHECK(dx.floats() == Floats{1, 0, 0, 1, 0, 0, 2, 0, 100, -1, 0, 100, 0, 0, 200, 0, 0, -100});

  REQUIRE(dnn().cudnnGetConvolutionBackwardFilterWorkspaceSize(
              s.handle, s.x.descriptor, s.y.descriptor, s.convolution.descriptor, s.w.descriptor,
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, &bytes) == CUDNN_STATUS_SUCCESS);
  const auto more_room = device::allocate<unsigned char>(bytes);
  REQUIRE(dnn().cudnnConvolutionBackwardFilter(
              s.handle, &kOne, s.x.descriptor, x.get(), s.y.descriptor, dy.get(),
              s.convolution.descriptor, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, more_room.get(), bytes,
              &kOne, s.w.descriptor, dw.get()) == CUDNN_STATUS_SUCCESS);
  const auto narrow = [](float v) { return __half2float(__float2half_rn(v)); };
  CHECK(dw.floats() ==
        Floats{502, narrow(5011), 603, narrow(6021), 805, narrow(8041), 906, narrow(9051)});
  CHECK(emulated::take_problems() == "");
}

TEST_CASE("results are rounded once, and TF32 is where it is allowed", "[emulated][libraries]") {
  const Floats weights = {1 + 0x1p-12F, 0, 0, 0, 0, 0, 0, 0};
  const auto first = [&](cudnnDataType_t type, cudnnMathType_t math) {
    const SmallConvolution small(type, math);
    const Values x(type, Floats(18, 1)), w(type, weights), y(type, Floats(4, kNan));
    CHECK(small.forward(x, w, y) == CUDNN_STATUS_SUCCESS);
    return y.floats()[0];
  };
  CHECK(first(CUDNN_DATA_FLOAT, CUDNN_FMA_MATH) == 1 + 0x1p-12F);
  CHECK(first(CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH) == 1);
  // 1 + 2^-11 is a tie of binary16, 2^-24 more is not; in two roundings the second is a tie again.
  const SmallConvolution small;
  const Values x(CUDNN_DATA_HALF,
                 {1, 0x1p-11F, 0x1p-12F, 0x1p-12F, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  const Values w(CUDNN_DATA_HALF, {1, 1, 0x1p-14F, 0, 0, 0, 0, 0});
  const Values y(CUDNN_DATA_HALF, Floats(4, kNan));
  CHECK(small.forward(x, w, y) == CUDNN_STATUS_SUCCESS);
  CHECK(y.floats()[0] == 1 + 0x1p-10F);
}

TEST_CASE("convolutions that are refused", "[emulated][libraries]") {
  const SmallConvolution s;
  const auto type = CUDNN_DATA_HALF;
  const Values x(type, kImage), w(type, kWeights), y(type, Floats(4));
  const auto forward = [&](const Tensor& to, const Filter& filter, const Convolution& convolution,
                           const void* from, int algorithm = 0) {
    return dnn().cudnnConvolutionForward(s.handle, &kOne, s.x.descriptor, from, filter.descriptor,
                                         w.get(), convolution.descriptor,
                                         static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), nullptr,
                                         0, &kZero, to.descriptor, y.get());
  };
  CHECK(forward(s.y, s.w, s.convolution, x.get()) == CUDNN_STATUS_SUCCESS);
  CHECK(forward(s.y, Filter(type, 1, 2, 2, 2, CUDNN_TENSOR_NCHW), s.convolution, x.get()) ==
        CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(last_words() == "a filter of another format than the tensors");
  CHECK(forward(Tensor(type, 1, 3, 3, 1), s.w, s.convolution, x.get()) == CUDNN_STATUS_BAD_PARAM);
  CHECK(forward(Tensor(CUDNN_DATA_FLOAT, 1, 2, 2, 1), s.w, s.convolution, x.get()) ==
        CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(forward(s.y, Filter(type, 1, 2, 2, 3), s.convolution, x.get()) == CUDNN_STATUS_BAD_PARAM);
  CHECK(forward(s.y, s.w, Convolution(0, 1, CUDNN_FMA_MATH, CUDNN_DATA_HALF), x.get()) ==
        CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(forward(s.y, s.w, Convolution(0, 1, CUDNN_FMA_MATH, CUDNN_DATA_FLOAT, CUDNN_CONVOLUTION),
                x.get()) == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(forward(s.y, s.w, s.convolution, x.get(), CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD) ==
        CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(
      forward(s.y, s.w, s.convolution, x.get(), CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) ==
      CUDNN_STATUS_BAD_PARAM);  // without its workspace
  CHECK(forward(s.y, s.w, s.convolution, static_cast<char*>(x.get()) + 2) ==
        CUDNN_STATUS_BAD_PARAM);
  CHECK(forward(s.y, s.w, s.convolution, y.get()) == CUDNN_STATUS_BAD_PARAM);
  CHECK(last_words() == "x is not 36 bytes of the device");
  CHECK(forward(s.y, s.w, s.convolution, kImage.data()) == CUDNN_STATUS_BAD_PARAM);
  // alpha of the wrong type: the first half of a double
  const double one = 1;
  CHECK(s.forward(x, w, y, reinterpret_cast<const float*>(&one)) == CUDNN_STATUS_SUCCESS);
  CHECK(emulated::take_problems() == "alpha of a convolution is 0\n");
}

TEST_CASE("lists of algorithms hold what must not be chosen", "[emulated][libraries]") {
  const SmallConvolution small(CUDNN_DATA_HALF, CUDNN_TENSOR_OP_MATH);
  const auto list = listed(dnn().cudnnGetConvolutionForwardAlgorithm_v7, small);
  CHECK(list.front().memory > std::size_t{4} << 30);
  CHECK(list.front().mathType == CUDNN_TENSOR_OP_MATH);
  CHECK(list.back().status == CUDNN_STATUS_NOT_SUPPORTED);
  for (const auto& one : list) {
    if (one.status != CUDNN_STATUS_SUCCESS || one.memory == 0) continue;
    std::size_t bytes = 0;
    CHECK(dnn().cudnnGetConvolutionForwardWorkspaceSize(
              small.handle, small.x.descriptor, small.w.descriptor, small.convolution.descriptor,
              small.y.descriptor, one.algo, &bytes) == CUDNN_STATUS_SUCCESS);
    CHECK(bytes > one.memory);
  }
  const SmallConvolution wide(CUDNN_DATA_FLOAT, CUDNN_FMA_MATH);
  for (const auto& one : listed(dnn().cudnnGetConvolutionForwardAlgorithm_v7, wide)) {
    if (one.status == CUDNN_STATUS_SUCCESS) CHECK(one.mathType == CUDNN_FMA_MATH);
  }
}

TEST_CASE("an algorithm that is not deterministic gives other results", "[emulated][libraries]") {
  const SmallConvolution s(CUDNN_DATA_FLOAT);
  const Values x(s.type, kImage), dy(s.type, {1, 2, 3, 4});
  std::vector<Floats> seen;
  for (int i = 0; i < 2; ++i) {
    const Values dw(s.type, Floats(8));
    CHECK(dnn().cudnnConvolutionBackwardFilter(
              s.handle, &kOne, s.x.descriptor, x.get(), s.y.descriptor, dy.get(),
              s.convolution.descriptor, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, nullptr, 0, &kZero,
              s.w.descriptor, dw.get()) == CUDNN_STATUS_SUCCESS);
    seen.push_back(dw.floats());
  }
  CHECK(seen[0] != seen[1]);
}

}  // namespace test_stand_in_convolution
