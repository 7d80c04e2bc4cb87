// SPDX-License-Identifier: Apache-2.0
// The policy types, for code that needs a particular one; other code includes only policy.hpp. A
// new policy is a struct as in torch.hpp and its type in Variant.
#pragma once

#include <variant>

#include "halfscope/policy/als.hpp"
#include "halfscope/policy/apex.hpp"
#include "halfscope/policy/chainer.hpp"
#include "halfscope/policy/deepspeed.hpp"
#include "halfscope/policy/fairseq.hpp"
#include "halfscope/policy/fastai.hpp"
#include "halfscope/policy/jax.hpp"
#include "halfscope/policy/megatron.hpp"
#include "halfscope/policy/mindspore.hpp"
#include "halfscope/policy/mxnet.hpp"
#include "halfscope/policy/nnabla.hpp"
#include "halfscope/policy/nvcaffe.hpp"
#include "halfscope/policy/open_seq2seq.hpp"
#include "halfscope/policy/paddle.hpp"
#include "halfscope/policy/policy.hpp"
#include "halfscope/policy/static.hpp"
#include "halfscope/policy/tensorflow.hpp"
#include "halfscope/policy/torch.hpp"
#include "halfscope/policy/transformer_engine.hpp"

namespace halfscope::policy {

struct Variant : std::variant<Static, Torch, Apex, ApexLegacy, ApexHysteresis, Megatron, ColossalAi,
                              DeepSpeed, DeepSpeedFused, Fairseq, Metaseq, Fastai1, Fastai2, Tf1,
                              Keras2, Keras3, TfContrib, Os2sBackoff, Os2sLogMax, Nnabla,
                              NnablaTutorial, Chainer, Mxnet, MxnetStatic, Jmp, Flax, Paddle,
                              Mindspore, MindsporeCell, Nvcaffe, Als, TeDelayed> {
  using variant::variant;
};

/// Returns the policy if its type is P, else null.
template <class P>
const P* get_if(const Policy& policy) {
  return std::get_if<P>(&policy.variant());
}

}  // namespace halfscope::policy
