// Tests: the error bounds that the GELU kernels state, over their range, and the ends of it.
#include "kernels/gelu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "guarded.h"
#include "kernels/column_sums.h"
#include "kernels/kernel_table.h"

namespace headwise::kernels {
namespace {

using headwise::testing::Guarded;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kSqrt2OverPi = 0.79788456080286535588;

struct Form {
  const char* name;
  bool tanh;
  float low;
};
constexpr Form kForms[] = {{"exact", false, kGeluLow}, {"by tanh", true, kGeluTanhLow}};

// The share of x that passes, and its slope. Written so that nothing cancels on the negative side.
double Share(bool tanh, double x) {
  if (!tanh) return 0.5 * std::erfc(-x * kSqrtHalf);
  return 1.0 / (1.0 + std::exp(-2.0 * kSqrt2OverPi * (x + 0.044715 * x * x * x)));
}
double Slope(bool tanh, double x) {
  const double s = Share(tanh, x);
  if (!tanh) return s + x * std::exp(-0.5 * x * x) * 0.39894228040143267794;
  return s + x * s * (1.0 - s) * 2.0 * kSqrt2OverPi * (1.0 + 3.0 * 0.044715 * x * x);
}

std::vector<float> Values(bool tanh, const std::vector<float>& x) {
  Guarded y(x.size());
  (tanh ? Kernels().gelu_tanh : Kernels().gelu)(x.data(), static_cast<std::ptrdiff_t>(x.size()), y.data());
  EXPECT_TRUE(y.MarginsIntact());
  return y.Values();
}
std::vector<float> Slopes(bool tanh, const std::vector<float>& x, const std::vector<float>& d_y) {
  Guarded d_x(x.size());
  (tanh ? Kernels().gelu_tanh_slope : Kernels().gelu_slope)(x.data(), d_y.data(), static_cast<std::ptrdiff_t>(x.size()),
                                                            d_x.data());
  EXPECT_TRUE(d_x.MarginsIntact());
  return d_x.Values();
}

// Both signs, dense around 0 and beyond the range on the right.
std::vector<float> Range(float low) {
  std::vector<float> x;
  for (float magnitude = 1e-20F; magnitude < 40.0F; magnitude *= 1.0003F) {
    x.push_back(magnitude);
    if (magnitude <= -low) x.push_back(-magnitude);
  }
  return x;
}

TEST(Gelu, ErrorStaysWithinTheStatedBound) {
  for (const Form& form : kForms) {
    const std::vector<float> x = Range(form.low);
    const std::vector<float> y = Values(form.tanh, x);
    const std::vector<float> slope = Slopes(form.tanh, x, std::vector<float>(x.size(), 1.0F));
    double worst = 0.0;
    double worst_slope = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = x[i] * Share(form.tanh, x[i]);
      if (std::fabs(expected) > std::numeric_limits<float>::min()) {
        worst = std::max(worst, std::fabs(y[i] / expected - 1.0) / GeluError(std::min(x[i], 0.0F)));
      }
      worst_slope = std::max(worst_slope, std::fabs(slope[i] - Slope(form.tanh, x[i])));
    }
    EXPECT_LE(worst, 1.0) << form.name;
    EXPECT_LE(worst_slope, kGeluSlopeError) << form.name;
    RecordProperty(form.tanh ? "tanh" : "exact",
                   std::to_string(worst) + " of the bound, slope " + std::to_string(worst_slope / kGeluSlopeError));
  }
}

TEST(Gelu, SpecialValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {0.0F, kInf, -kInf, nan, 1e30F, -1e30F, 100.0F, -100.0F};
  const std::vector<float> value = {0.0F, kInf, 0.0F, nan, 1e30F, 0.0F, 100.0F, 0.0F};
  const std::vector<float> slope = {0.5F, 1.0F, 0.0F, nan, 1.0F, 0.0F, 1.0F, 0.0F};
  for (const Form& form : kForms) {
    const std::vector<float> y = Values(form.tanh, x);
    const std::vector<float> d_x = Slopes(form.tanh, x, std::vector<float>(x.size(), 1.0F));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        EXPECT_TRUE(std::isnan(y[i]) && std::isnan(d_x[i]));
      } else {
        EXPECT_FLOAT_EQ(y[i], value[i]) << form.name << " " << x[i];
        EXPECT_FLOAT_EQ(d_x[i], slope[i]) << form.name << " " << x[i];
      }
    }
  }
}

TEST(Gelu, AnyCountGivesTheSameBits) {
  const std::vector<float> x = {-3.0F, -1.5F, -0.75F, -0.1F, 0.0F, 0.3F, 0.9F, 2.0F, 4.0F};
  const std::vector<float> d_y = {1.0F, -2.0F, 0.5F, 3.0F, 1.0F, -1.0F, 2.0F, 0.25F, 1.0F};
  for (const Form& form : kForms) {
    const std::vector<float> y = Values(form.tanh, x);
    const std::vector<float> d_x = Slopes(form.tanh, x, d_y);
    for (std::size_t count = 0; count < x.size(); ++count) {
      for (std::size_t first = 0; first + count <= x.size(); ++first) {
        const auto part = [&](const std::vector<float>& of) {
          return std::vector<float>(of.begin() + static_cast<std::ptrdiff_t>(first),
                                    of.begin() + static_cast<std::ptrdiff_t>(first + count));
        };
        EXPECT_EQ(Values(form.tanh, part(x)), part(y));
        EXPECT_EQ(Slopes(form.tanh, part(x), part(d_y)), part(d_x));
      }
    }
  }
}

// The error of sums over many rows is that of a run of them.
TEST(ColumnSums, ErrorStaysWithinTheStatedBound) {
  const std::ptrdiff_t rows = 1001;
  const int columns = 7;
  std::vector<float> x(static_cast<std::size_t>(rows * 9));
  std::vector<float> g(x.size());
  std::vector<float> mean(static_cast<std::size_t>(rows));
  std::vector<float> inverse(mean.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) + 0.3F;
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = std::cos(static_cast<float>(3 * i));
  for (std::size_t r = 0; r < mean.size(); ++r) {
    mean[r] = 0.1F * std::sin(static_cast<float>(r));
    inverse[r] = 1.5F + std::cos(static_cast<float>(r));
  }
  for (const bool centred : {true, false}) {
    double sums[columns] = {};
    double products[columns] = {};
    Kernels().sum_columns(x.data(), 9, rows, columns, sums);
    Kernels().sum_normalized(g.data(), x.data(), 9, rows, columns, centred ? mean.data() : nullptr, inverse.data(),
                             products);
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0.0;
      double product = 0.0;
      double sum_magnitude = 0.0;
      double product_magnitude = 0.0;
      for (std::size_t r = 0; r < mean.size(); ++r) {
        const double at = x[r * 9 + c];
        const double shift = centred ? mean[r] : 0.0F;
        sum += at;
        sum_magnitude += std::fabs(at);
        product += g[r * 9 + c] * (at - shift) * inverse[r];
        product_magnitude += std::fabs(g[r * 9 + c] * (at - shift) * inverse[r]);
      }
      const double bound = (ColumnSums::kRun + 3) * 0x1p-24;
      EXPECT_NEAR(sums[c], sum, bound * sum_magnitude);
      EXPECT_NEAR(products[c], product, bound * product_magnitude);
    }
  }
}

}  // namespace
}  // namespace headwise::kernels
