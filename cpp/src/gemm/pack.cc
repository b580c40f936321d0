// Driver: packed weights. Panel p holds columns p * kPanel ... of every row, row after row; missing columns are 0.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "headwise/gemm.h"
#include "kernels/gemm_tile.h"
#include "kernels/kernel_table.h"
#include "memory/aligned.h"

namespace headwise {
namespace {

constexpr std::int32_t kPanel = kernels::GemmTile::kPanel;

}  // namespace

PackedMatrix::~PackedMatrix() { FreeAligned(panels_); }

PackedMatrix::PackedMatrix(PackedMatrix&& other) noexcept
    : panels_(std::exchange(other.panels_, nullptr)),
      rows_(std::exchange(other.rows_, 0)),
      columns_(std::exchange(other.columns_, 0)) {}

PackedMatrix& PackedMatrix::operator=(PackedMatrix&& other) noexcept {
  if (this != &other) {
    FreeAligned(panels_);
    panels_ = std::exchange(other.panels_, nullptr);
    rows_ = std::exchange(other.rows_, 0);
    columns_ = std::exchange(other.columns_, 0);
  }
  return *this;
}

std::int64_t PackedMatrix::panel_count() const { return (std::int64_t{columns_} + kPanel - 1) / kPanel; }

Status PackedMatrix::Reserve(std::int32_t rows, std::int32_t columns) {
  if (rows < 0 || columns < 0) return Status::InvalidShape("kernel");
  if (panels_ != nullptr && rows == rows_ && columns == columns_) return Status::Ok();
  const std::int64_t panels = (std::int64_t{columns} + kPanel - 1) / kPanel;
  const std::uint64_t bytes = CheckedMul(
      CheckedMul(static_cast<std::uint64_t>(panels * kPanel), static_cast<std::uint64_t>(rows)), sizeof(float));
  auto* const packed = static_cast<float*>(AllocateAligned(bytes));
  if (packed == nullptr) return Status::OutOfMemory(bytes);
  FreeAligned(panels_);
  panels_ = packed;
  rows_ = rows;
  columns_ = columns;
  return Status::Ok();
}

void PackedMatrix::PackPanel(std::int64_t panel, const float* source, std::int64_t row_stride,
                             std::int64_t column_stride, std::int32_t first_row, std::int32_t rows) {
  if (rows == 0) return;
  const std::int64_t first = panel * kPanel;
  const std::int64_t count = std::min<std::int64_t>(kPanel, columns_ - first);
  float* to = panels_ + first * rows_ + std::int64_t{first_row} * kPanel;
  const float* from = source + first * column_stride;
  if (row_stride == 1) {
    kernels::Kernels().pack_transposed(from, column_stride, static_cast<int>(count), rows, to);
    return;
  }
  if (column_stride == 1) {
    kernels::Kernels().pack_columns(from, row_stride, rows, static_cast<int>(count), to, 0);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row, from += row_stride, to += kPanel) {
    for (std::int64_t column = 0; column < count; ++column) to[column] = from[column * column_stride];
    std::fill(to + count, to + kPanel, 0.0F);
  }
}

Status PackedMatrix::Pack(const float* source, std::int32_t rows, std::int32_t columns, std::int64_t row_stride,
                          std::int64_t column_stride) {
  if (rows < 0 || columns < 0) return Status::InvalidShape("kernel");
  if (source == nullptr && rows > 0 && columns > 0) return Status::InvalidValue("kernel");
  if (const Status status = Reserve(rows, columns); !status.ok()) return status;
  for (std::int64_t panel = 0; panel < panel_count(); ++panel) PackPanel(panel, source, row_stride, column_stride);
  return Status::Ok();
}

void PackedMatrix::Unpack(float* target) const {
  const float* from = panels_;
  for (std::int64_t first = 0; first < columns_; first += kPanel) {
    const std::int64_t count = std::min<std::int64_t>(kPanel, columns_ - first);
    for (std::int64_t row = 0; row < rows_; ++row, from += kPanel) {
      std::copy_n(from, count, target + row * columns_ + first);
    }
  }
}

}  // namespace headwise
