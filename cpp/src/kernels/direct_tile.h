// Kernel: scores and values of a few query rows against keys and values where they lie, unpacked: what decoding and
// other short problems use, since packing would cost more than it saves.
//
// Contract: rows of K and V are contiguous (`head_dim`, `value_dim` floats), `stride` apart; nothing outside is read.
// Scores(...) writes `count` scores a row. A score is summed in partial sums over d, then the tail, in an order that depends
// on head_dim and on whether the row is one of four that go together. Rows share the loads of keys and values: with four
// rows to a key, as grouped heads have them, it is instructions and not memory that such a step takes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/read_ahead.h"
#include "kernels/tanh.h"
#include "simd/simd.h"

namespace headwise::kernels {

struct DirectTile {
  using V = simd::Vector;
  static constexpr int kValueVectors = 8;  // accumulators of one pass over the values

  static void Scores(int rows, const float* q, std::ptrdiff_t ldq, const float* k, std::ptrdiff_t stride, int count,
                     int head_dim, float* s, std::ptrdiff_t lds, ReadAhead ahead) {
    int r = 0;
    for (; r + 4 <= rows; r += 4) Dots<4, 2, 1>(q + r * ldq, ldq, k, stride, count, head_dim, s + r * lds, lds, &ahead);
    if (r + 2 <= rows) {
      Dots<2, 2, 2>(q + r * ldq, ldq, k, stride, count, head_dim, s + r * lds, lds, &ahead);
      r += 2;
    }
    if (r < rows) Dots<1, 4, 2>(q + r * ldq, ldq, k, stride, count, head_dim, s + r * lds, lds, &ahead);
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
    int r = 0;
    if (visible == nullptr) {
      for (; r + 4 <= rows; r += 4) {
        RowColumns<4, 2>(p + r * ldp, ldp, v, stride, count, value_dim, rescale + r, acc + r * ld_acc, ld_acc, &ahead);
      }
      if (r + 2 <= rows) {
        RowColumns<2, 4>(p + r * ldp, ldp, v, stride, count, value_dim, rescale + r, acc + r * ld_acc, ld_acc, &ahead);
        r += 2;
      }
    }
    for (; r < rows; ++r) {
      const std::uint8_t* seen = visible == nullptr ? nullptr : visible + r * ldp;
      OneRow(p + r * ldp, seen, v, stride, count, value_dim, rescale[r], acc + r * ld_acc, &ahead);
    }
  }

 private:
  // kRows rows of scores, kKeys keys at a time, each score in kPartials partial sums.
  template <int kRows, int kKeys, int kPartials>
  static void Dots(const float* q, std::ptrdiff_t ldq, const float* k, std::ptrdiff_t stride, int count, int head_dim,
                   float* s, std::ptrdiff_t lds, ReadAhead* ahead) {
    const int groups = (count + kKeys - 1) / kKeys;
    ReadAhead::Line line = ahead->Take(std::ptrdiff_t{groups} * kKeys * head_dim, k);
    for (int j = 0; j < count; j += kKeys) {
      V sum[kPartials * kRows][kKeys];
      const float* query[kRows];
      const float* key[kKeys];
      for (auto& row : sum) {
        for (V& x : row) x = simd::Splat(0.0F);
      }
      for (int r = 0; r < kRows; ++r) query[r] = q + r * ldq;
      for (int i = 0; i < kKeys; ++i) key[i] = k + (j + i < count ? j + i : count - 1) * stride;
      const auto turn = [&](int d, int partial) {
        V x[kKeys];
        for (int i = 0; i < kKeys; ++i) x[i] = simd::Load(key[i] + d);
        for (int r = 0; r < kRows; ++r) {
          const V y = simd::Load(query[r] + d);
          V* to = sum[partial * kRows + r];
          for (int i = 0; i < kKeys; ++i) to[i] = simd::MulAdd(y, x[i], to[i]);
        }
      };
      const auto advance = [&](int by) {
        for (const float*& p : query) p += by;
        for (const float*& p : key) p += by;
      };
      int left = head_dim;
      for (; left >= 2 * simd::kLanes; left -= 2 * simd::kLanes) {
        turn(0, 0);
        turn(simd::kLanes, kPartials - 1);
        advance(2 * simd::kLanes);
        line.Read<2 * simd::kLanes * kKeys>();
      }
      for (; left >= simd::kLanes; left -= simd::kLanes) {
        turn(0, 0);
        advance(simd::kLanes);
      }
      for (int r = 0; r < kRows; ++r) {
        for (int i = 0; i < kKeys; ++i) {
          float total = simd::Sum(kPartials == 1 ? sum[r][i] : sum[r][i] + sum[kRows * (kPartials - 1) + r][i]);
          for (int d = 0; d < left; ++d) total += query[r][d] * key[i][d];
          if (j + i < count) s[r * lds + j + i] = total;
        }
      }
    }
  }

  // kRows rows of all columns, kVectors vectors of them at a time, every key used.
  template <int kRows, int kVectors>
  static void RowColumns(const float* weights, std::ptrdiff_t ldp, const float* v, std::ptrdiff_t stride, int count,
                         int value_dim, const float* rescale, float* acc, std::ptrdiff_t ld_acc, ReadAhead* ahead) {
    constexpr int kColumns = kVectors * simd::kLanes;
    ReadAhead::Line line = ahead->Take(std::ptrdiff_t{count} * value_dim, v);
    int c = 0;
    for (; c + kColumns <= value_dim; c += kColumns) {
      RowVectors<kRows, kVectors>(weights, ldp, v + c, stride, count, rescale, acc + c, ld_acc, &line);
    }
    for (; c + simd::kLanes <= value_dim; c += simd::kLanes) {
      RowVectors<kRows, 1>(weights, ldp, v + c, stride, count, rescale, acc + c, ld_acc, &line);
    }
    for (int r = 0; r < kRows; ++r) {
      TailColumns(weights + r * ldp, nullptr, v, stride, count, c, value_dim, rescale[r], acc + r * ld_acc);
    }
  }

  // kRows x kVectors accumulators. Two keys a turn.
  template <int kRows, int kVectors>
  static inline void RowVectors(const float* weights, std::ptrdiff_t ldp, const float* v, std::ptrdiff_t stride,
                                int count, const float* rescale, float* to, std::ptrdiff_t ld_to,
                                ReadAhead::Line* place) {
    ReadAhead::Line line = *place;
    V sum[kRows][kVectors];
    for (auto& row : sum) {
      for (V& x : row) x = simd::Splat(0.0F);
    }
    const float* weight[kRows];
    for (int r = 0; r < kRows; ++r) weight[r] = weights + r * ldp;
    const auto turn = [&](int j) {
      V x[kVectors];
      for (int i = 0; i < kVectors; ++i) x[i] = simd::Load(v + i * simd::kLanes);
      for (int r = 0; r < kRows; ++r) {
        const V w = simd::Splat(weight[r][j]);
        for (int i = 0; i < kVectors; ++i) sum[r][i] = simd::MulAdd(w, x[i], sum[r][i]);
      }
      simd::KeepInPlace(v += stride);
    };
    const float* const last_turn = weights + (count & ~1);
    while (weight[0] != last_turn) {
      turn(0);
      turn(1);
      line.Read<2 * kVectors * simd::kLanes>();
      for (const float*& w : weight) simd::KeepInPlace(w += 2);
    }
    if ((count & 1) != 0) turn(0);
    for (int r = 0; r < kRows; ++r) {
      const V factor = simd::Splat(rescale[r]);
      for (int i = 0; i < kVectors; ++i) {
        float* at = to + r * ld_to + i * simd::kLanes;
        simd::Store(at, simd::MulAdd(simd::Load(at), factor, sum[r][i]));
      }
    }
    *place = line;
  }

  // One row of all columns; where `seen` is given, of the keys that it marks.
  static void OneRow(const float* weights, const std::uint8_t* seen, const float* v, std::ptrdiff_t stride, int count,
                     int value_dim, float rescale, float* acc, ReadAhead* ahead) {
    constexpr int kColumns = kValueVectors * simd::kLanes;
    ReadAhead::Line line = ahead->Take(std::ptrdiff_t{count} * value_dim, v);
    int c = 0;
    for (; c + kColumns <= value_dim; c += kColumns) {
      Columns<kValueVectors>(weights, seen, v + c, stride, count, rescale, acc + c, &line);
    }
    for (; c + simd::kLanes <= value_dim; c += simd::kLanes) {
      Columns<1>(weights, seen, v + c, stride, count, rescale, acc + c, &line);
    }
    TailColumns(weights, seen, v, stride, count, c, value_dim, rescale, acc);
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

  template <int kVectors>
  static inline void Columns(const float* weights, const std::uint8_t* seen, const float* v, std::ptrdiff_t stride,
                             int count, float rescale, float* to, ReadAhead::Line* place) {
    ReadAhead::Line line = *place;
    V sum[kVectors];
    for (V& x : sum) x = simd::Splat(0.0F);
    for (int j = 0; j < count; ++j, v += stride) {
      if (seen != nullptr && seen[j] == 0) continue;
      const V weight = simd::Splat(weights[j]);
      for (int i = 0; i < kVectors; ++i) sum[i] = simd::MulAdd(weight, simd::Load(v + i * simd::kLanes), sum[i]);
      line.Read<kVectors * simd::kLanes>();
    }
    const V factor = simd::Splat(rescale);
    for (int i = 0; i < kVectors; ++i, to += simd::kLanes) {
      simd::Store(to, simd::MulAdd(simd::Load(to), factor, sum[i]));
    }
    *place = line;
  }
};

}  // namespace headwise::kernels
