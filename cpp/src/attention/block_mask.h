// Attention driver: the block-sparse mask in compressed rows: which keys of a stretch the query blocks list. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headwise/attention.h"

namespace headwise {

class BlockMask {
 public:
  explicit BlockMask(const AttentionArgs& args)
      : size_(args.block_size), rows_(args.block_rows), columns_(args.block_columns) {}

  bool given() const { return size_ > 0; }

  // Calls see(begin, end) for every stretch of the keys first ... last - 1 that query row i may see, in ascending order.
  template <class See>
  void ForEachListed(std::int32_t i, std::int32_t first, std::int32_t last, See&& see) const {
    const std::int32_t* const end = columns_ + rows_[i / size_ + 1];
    const std::int32_t* column = std::lower_bound(columns_ + rows_[i / size_], end, first / size_);
    for (; column < end && std::int64_t{*column} * size_ < last; ++column) {
      const std::int64_t key = std::int64_t{*column} * size_;
      see(static_cast<std::int32_t>(std::max<std::int64_t>(key, first)),
          static_cast<std::int32_t>(std::min<std::int64_t>(key + size_, last)));
    }
  }

  struct Summary {
    std::int32_t begin;  // the first key that some row may see; last if there is none
    std::int32_t end;    // one past the last
    bool all;            // every row may see every key
  };
  Summary Summarize(std::int32_t row, std::int32_t rows, std::int32_t first, std::int32_t last) const {
    Summary summary{last, first, true};
    for (std::int32_t i = row / size_ * size_; i < row + rows; i += size_) {
      std::int32_t count = 0;
      ForEachListed(i, first, last, [&](std::int32_t begin, std::int32_t end) {
        summary.begin = std::min(summary.begin, begin);
        summary.end = std::max(summary.end, end);
        count += end - begin;
      });
      summary.all &= count == last - first;
    }
    return summary;
  }

 private:
  std::int32_t size_;
  const std::int32_t* rows_;
  const std::int32_t* columns_;
};

}  // namespace headwise
