// First values of the weights, by the role of a parameter.
#pragma once

#include "core/autograd/parameter.h"
#include "core/model/config.h"

namespace fathom::model {

//          embeddings, output   q, k, v            attention out   fc1, fc2               biases
// fairseq  N(0, C^-1/2)         Xavier, gain 2^-½  Xavier          U(+-1/sqrt(fan in))    as fc1;
//                                                                                attention out: 0
// xavier   N(0, C^-1/2)         Xavier             Xavier          Xavier                 0
//
// Xavier is uniform with variance gain^2 2/(fan in + fan out), each of q, k and v being a (C, C)
// matrix of its own. Norm gains are 1 and their biases 0. (fairseq 0.12.2's defaults.)
void initialise_parameters(ParameterStore& store, const ModelConfig& config, uint64_t seed);

}  // namespace fathom::model
