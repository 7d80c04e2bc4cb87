// SPDX-License-Identifier: Apache-2.0
// The policies themselves, for who asks for one by its type; all others include policy.hpp alone.
// To add one: a struct as in torch.hpp, its type in Variant.
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

/// The policy where it is a P, else null.
template <class P>
const P* get_if(const Policy& policy) {
  return std::get_if<P>(&policy.variant());
}

}  // namespace halfscope::policy
