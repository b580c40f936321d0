// Kernel: scores and values of a few query rows against keys and values where they lie, unpacked: what decoding and
// other short problems use, since packing would cost more than it saves.
//
// Contract: rows of K and V are contiguous (`head_dim`, `value_dim` floats), `stride` apart; nothing outside is read.
// Scores(...) writes `count` scores a row. A score is summed in kLanes partial sums over d, then the tail, in an order
// that depends on head_dim alone. Rows share the loads of keys and values: with four rows to a key, as grouped heads have
// them, it is instructions and not memory that such a step takes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/read_ahead.h"
#include "kernels/tanh.h"
#include "simd/simd.h"

namespace headwise::kernels {

struct DirectTile {
  using V = simd::Vector;
  static constexpr int kKeys = 8;          // keys that share a load of the query
  static constexpr int kValueVectors = 8;  // accumulators of one pass over the values

  static void Scores(int rows, const float* q, std::ptrdiff_t ldq, const float* k, std::ptrdiff_t stride, int count,
                     int head_dim, float* s, std::ptrdiff_t lds, ReadAhead ahead) {
    int j = 0;
    for (; j + kKeys <= count; j += kKeys) {
      ahead.Take(kKeys);
      int r = 0;
      for (; r + 4 <= rows; r += 4) {
        for (int i = 0; i < kKeys; i += 2) {
          RowDots<4, 2>(q + r * ldq, ldq, k + (j + i) * stride, stride, head_dim, s + r * lds + j + i, lds);
        }
      }
      for (; r + 2 <= rows; r += 2) {
        for (int i = 0; i < kKeys; i += 4) {
          RowDots<2, 4>(q + r * ldq, ldq, k + (j + i) * stride, stride, head_dim, s + r * lds + j + i, lds);
        }
      }
      for (; r < rows; ++r) Dots<kKeys>(q + r * ldq, k + j * stride, stride, head_dim, s + r * lds + j);
    }
    for (; j < count; ++j) {
      for (int r = 0; r < rows; ++r) Dots<1>(q + r * ldq, k + j * stride, stride, head_dim, s + r * lds + j);
    }
  }

  static void AdditiveScores(int rows, const float* q, std::ptrdiff_t ldq, const float* k, std::ptrdiff_t stride,
                             int count, int head_dim, const float* weights, float* s, std::ptrdiff_t lds) {
    const Tanh tanh;
    alignas(64) float lanes[simd::kLanes];
    for (int j = 0; j < count; ++j, k += stride) {
      for (int r = 0; r < rows; ++r) {
        const float* query = q + r * ldq;
        V sum = simd::Splat(0.0F);
        for (int d = 0; d < head_dim; d += simd::kLanes) {
          const int width = head_dim - d < simd::kLanes ? head_dim - d : simd::kLanes;
          V x;
          V weight;
          if (width == simd::kLanes) {
            x = simd::Load(query + d) + simd::Load(k + d);
            weight = simd::Load(weights + d);
          } else {
            for (int i = 0; i < simd::kLanes; ++i) lanes[i] = i < width ? query[d + i] + k[d + i] : 0.0F;
            x = simd::Load(lanes);
            for (int i = 0; i < simd::kLanes; ++i) lanes[i] = i < width ? weights[d + i] : 0.0F;
            weight = simd::Load(lanes);
          }
          sum = simd::MulAdd(weight, tanh(x), sum);
        }
        s[r * lds + j] = simd::Sum(sum);
      }
    }
  }

  // acc[r, c] = acc[r, c] * rescale[r] + sum_j p[r, j] v[j, c]. Where `visible` is given (rows of `ldp` bytes), a key
  // whose byte is 0 is left out altogether; else every p is used.
  static void Values(int rows, const float* p, std::ptrdiff_t ldp, const std::uint8_t* visible, const float* v,
                     std::ptrdiff_t stride, int count, int value_dim, const float* rescale, float* acc,
                     std::ptrdiff_t ld_acc, ReadAhead ahead) {
    int first = 0;
    const int share = ReadAheadShare(ahead.rows, visible == nullptr && rows >= 4 ? 2 : kValueVectors, value_dim);
    if (visible == nullptr) {
      const int whole = value_dim / simd::kLanes * simd::kLanes;
      for (; first + 4 <= rows; first += 4) {
        int c = 0;
        for (; c + 2 * simd::kLanes <= whole; c += 2 * simd::kLanes) {
          ahead.Take(share);
          RowColumns<4, 2>(p + first * ldp, ldp, v + c, stride, count, rescale + first, acc + first * ld_acc + c,
                           ld_acc);
        }
        for (; c < whole; c += simd::kLanes) {
          RowColumns<4, 1>(p + first * ldp, ldp, v + c, stride, count, rescale + first, acc + first * ld_acc + c,
                           ld_acc);
        }
        for (int r = first; r < first + 4; ++r) {
          TailColumns(p + r * ldp, nullptr, v, stride, count, whole, value_dim, rescale[r], acc + r * ld_acc);
        }
      }
    }
    for (int r = first; r < rows; ++r) {
      const float* weights = p + r * ldp;
      const std::uint8_t* seen = visible == nullptr ? nullptr : visible + r * ldp;
      float* to = acc + r * ld_acc;
      int c = 0;
      for (; c + kValueVectors * simd::kLanes <= value_dim; c += kValueVectors * simd::kLanes) {
        ahead.Take(share);
        Columns<kValueVectors>(weights, seen, v + c, stride, count, rescale[r], to + c);
      }
      for (; c + simd::kLanes <= value_dim; c += simd::kLanes) {
        Columns<1>(weights, seen, v + c, stride, count, rescale[r], to + c);
      }
      TailColumns(weights, seen, v, stride, count, c, value_dim, rescale[r], to);
    }
  }

 private:
  // Rows to read ahead with each pass over the values that covers so many vectors of columns.
  static int ReadAheadShare(int rows, int vectors, int value_dim) {
    const int passes = value_dim / (vectors * simd::kLanes);
    return passes > 1 ? (rows + passes - 1) / passes : rows;
  }

  // kRows x kCount scores. Two vectors a turn, so that half of the loads have their place written into them.
  template <int kRows, int kCount>
  static inline void RowDots(const float* q, std::ptrdiff_t ldq, const float* k, std::ptrdiff_t stride, int head_dim,
                             float* s, std::ptrdiff_t lds) {
    V sum[kRows][kCount];
    const float* query[kRows];
    const float* key[kCount];
    for (int r = 0; r < kRows; ++r) {
      query[r] = q + r * ldq;
      for (V& x : sum[r]) x = simd::Splat(0.0F);
    }
    for (int j = 0; j < kCount; ++j) key[j] = k + j * stride;
    const auto turn = [&](int d) {
      V x[kCount];
      for (int j = 0; j < kCount; ++j) x[j] = simd::Load(key[j] + d);
      for (int r = 0; r < kRows; ++r) {
        const V y = simd::Load(query[r] + d);
        for (int j = 0; j < kCount; ++j) sum[r][j] = simd::MulAdd(y, x[j], sum[r][j]);
      }
    };
    int d = 0;
    for (; d + 2 * simd::kLanes <= head_dim; d += 2 * simd::kLanes) {
      turn(d);
      turn(d + simd::kLanes);
    }
    for (; d + simd::kLanes <= head_dim; d += simd::kLanes) turn(d);
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < kCount; ++j) {
        float total = simd::Sum(sum[r][j]);
        for (int tail = d; tail < head_dim; ++tail) total += query[r][tail] * key[j][tail];
        s[r * lds + j] = total;
      }
    }
  }

  // kRows x kVectors accumulators, every key used.
  template <int kRows, int kVectors>
  static inline void RowColumns(const float* weights, std::ptrdiff_t ldp, const float* v, std::ptrdiff_t stride,
                                int count, const float* rescale, float* to, std::ptrdiff_t ld_to) {
    V sum[kRows][kVectors];
    for (auto& row : sum) {
      for (V& x : row) x = simd::Splat(0.0F);
    }
    for (int j = 0; j < count; ++j, v += stride) {
      V x[kVectors];
      for (int i = 0; i < kVectors; ++i) x[i] = simd::Load(v + i * simd::kLanes);
      for (int r = 0; r < kRows; ++r) {
        const V weight = simd::Splat(weights[r * ldp + j]);
        for (int i = 0; i < kVectors; ++i) sum[r][i] = simd::MulAdd(weight, x[i], sum[r][i]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      const V factor = simd::Splat(rescale[r]);
      for (int i = 0; i < kVectors; ++i) {
        float* at = to + r * ld_to + i * simd::kLanes;
        simd::Store(at, simd::MulAdd(simd::Load(at), factor, sum[r][i]));
      }
    }
  }

  // The columns from c on, which fill no vector.
  static inline void TailColumns(const float* weights, const std::uint8_t* seen, const float* v, std::ptrdiff_t stride,
                                 int count, int c, int value_dim, float rescale, float* to) {
    for (; c < value_dim; ++c) {
      float sum = 0.0F;
      for (int j = 0; j < count; ++j) {
        if (seen == nullptr || seen[j] != 0) sum += weights[j] * v[j * stride + c];
      }
      to[c] = to[c] * rescale + sum;
    }
  }

  template <int kCount>
  static inline void Dots(const float* q, const float* k, std::ptrdiff_t stride, int head_dim, float* s) {
    V sum[kCount];
    const float* key[kCount];
    for (int j = 0; j < kCount; ++j) {
      sum[j] = simd::Splat(0.0F);
      key[j] = k + j * stride;
    }
    int d = 0;
    for (; d + simd::kLanes <= head_dim; d += simd::kLanes) {
      const V query = simd::Load(q + d);
      for (int j = 0; j < kCount; ++j) sum[j] = simd::MulAdd(query, simd::Load(key[j] + d), sum[j]);
    }
    for (int j = 0; j < kCount; ++j) {
      float total = simd::Sum(sum[j]);
      for (int tail = d; tail < head_dim; ++tail) total += q[tail] * key[j][tail];
      s[j] = total;
    }
  }

  template <int kVectors>
  static inline void Columns(const float* weights, const std::uint8_t* seen, const float* v, std::ptrdiff_t stride,
                             int count, float rescale, float* to) {
    V sum[kVectors];
    for (V& x : sum) x = simd::Splat(0.0F);
    for (int j = 0; j < count; ++j, v += stride) {
      if (seen != nullptr && seen[j] == 0) continue;
      const V weight = simd::Splat(weights[j]);
      for (int i = 0; i < kVectors; ++i) sum[i] = simd::MulAdd(weight, simd::Load(v + i * simd::kLanes), sum[i]);
    }
    const V factor = simd::Splat(rescale);
    for (int i = 0; i < kVectors; ++i, to += simd::kLanes) {
      simd::Store(to, simd::MulAdd(simd::Load(to), factor, sum[i]));
    }
  }
};

}  // namespace headwise::kernels
