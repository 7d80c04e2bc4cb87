// SPDX-License-Identifier: Apache-2.0
// The stand-ins, by the names and with the parameters of the functions they stand for.
#pragma once

#include "sim/backend/cudnn/api.hpp"

namespace halfscope::emulated {

struct StandIns {
#define HALFSCOPE_STAND_IN(name) static decltype(::name) name;
  HALFSCOPE_STAND_IN(cudnnGetConvolutionForwardAlgorithm_v7)
  HALFSCOPE_STAND_IN(cudnnGetConvolutionBackwardDataAlgorithm_v7)
  HALFSCOPE_STAND_IN(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
  HALFSCOPE_STAND_IN(cudnnGetConvolutionForwardWorkspaceSize)
  HALFSCOPE_STAND_IN(cudnnGetConvolutionBackwardDataWorkspaceSize)
  HALFSCOPE_STAND_IN(cudnnGetConvolutionBackwardFilterWorkspaceSize)
  HALFSCOPE_STAND_IN(cudnnConvolutionForward)
  HALFSCOPE_STAND_IN(cudnnConvolutionBackwardData)
  HALFSCOPE_STAND_IN(cudnnConvolutionBackwardFilter)
  HALFSCOPE_STAND_IN(cudnnPoolingForward)
  HALFSCOPE_STAND_IN(cudnnPoolingBackward)
#undef HALFSCOPE_STAND_IN
};

void put_cublas(sim::backend::cudnn::CublasApi& api);

}  // namespace halfscope::emulated
