//! What the reference got: the numbers saved with the released code, 500 epochs, mean and
//! sample standard deviation over the data seeds 1, 2, 3 and 42, one run each; and the paper's
//! Table 6 where nothing is saved.
//!
//! The paper's Tables 1, 5 and 6 print the rows of N = 12 and γ = 0 to three digits. Three things
//! to know: the smoothness of the GMM head on gmm2 belongs to an older file (the distributions
//! saved beside it have 0.0464 ± 0.0068), the linear head's MSE on gaussian in Table 6 (0.013 ±
//! 0.001) is the one saved for the likeliest bin, and nothing seeds the weights.

use crate::toy::findings::MeanSd;
use crate::toy::{Dataset, HeadKind};

/// What is known of a head on a dataset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saved {
    /// Mean divergence of the model from the truth, in nats.
    pub kl: MeanSd,
    /// Squared error of the expected bin.
    pub mse: MeanSd,
    /// Squared error of the likeliest bin.
    pub mse_argmax: MeanSd,
    /// Smoothness, over the distributions of all test rows of all seeds.
    pub smoothness: MeanSd,
}

/// The reference's numbers, where there are any.
pub fn saved(dataset: Dataset, kind: HeadKind) -> Option<Saved> {
    let (linear, gmm, plain, regularised) = match dataset {
        Dataset::Gaussian => (GAUSSIAN_LINEAR, GAUSSIAN_GMM, GAUSSIAN, GAUSSIAN_REGULARISED),
        Dataset::Gmm2 => (GMM2_LINEAR, GMM2_GMM, GMM2, GMM2_REGULARISED),
        Dataset::Beta => (BETA_LINEAR, BETA_GMM, BETA, BETA_REGULARISED),
    };
    let of = |rows: [[MeanSd; 4]; 10], frequencies: usize| {
        let even = frequencies.is_multiple_of(2) && frequencies > 0;
        even.then(|| rows.get(frequencies / 2 - 1).copied()).flatten()
    };
    let [kl, mse, mse_argmax, smoothness] = match kind {
        HeadKind::Linear => linear,
        HeadKind::Gmm { .. } => gmm,
        HeadKind::Fourier { frequencies, gamma: 0.0 } => of(plain, frequencies)?,
        HeadKind::Fourier { frequencies, gamma: 1e-6 } => of(regularised, frequencies)?,
        _ => return None,
    };
    Some(Saved { kl, mse, mse_argmax, smoothness })
}

/// Table 6: squared error of pointwise regression.
pub fn pointwise_mse(dataset: Dataset) -> MeanSd {
    match dataset {
        Dataset::Gaussian => (0.010, 0.001),
        Dataset::Gmm2 => (0.121, 0.004),
        Dataset::Beta => (0.275, 0.009),
    }
}

// KL, MSE, MSE of the likeliest bin, smoothness; for frequencies N = 2, 4, ..., 20.

const GAUSSIAN_LINEAR: [MeanSd; 4] =
    [(0.1695, 0.0523), (0.0106, 0.0009), (0.0126, 0.0011), (0.1162, 0.0497)];
const GAUSSIAN_GMM: [MeanSd; 4] =
    [(0.0260, 0.0110), (0.0104, 0.0010), (0.0104, 0.0010), (0.0678, 0.0119)];
const GAUSSIAN: [[MeanSd; 4]; 10] = [
    [(0.5627, 0.0022), (0.0436, 0.0040), (0.0105, 0.0011), (0.0170, 0.0002)],
    [(0.1972, 0.0043), (0.0191, 0.0013), (0.0105, 0.0007), (0.0354, 0.0012)],
    [(0.0952, 0.0326), (0.0140, 0.0011), (0.0109, 0.0011), (0.0490, 0.0055)],
    [(0.1004, 0.0444), (0.0127, 0.0014), (0.0117, 0.0012), (0.0535, 0.0101)],
    [(0.0978, 0.0348), (0.0123, 0.0006), (0.0116, 0.0008), (0.0548, 0.0106)],
    [(0.1163, 0.0433), (0.0124, 0.0009), (0.0124, 0.0013), (0.0569, 0.0113)],
    [(0.0873, 0.0149), (0.0117, 0.0009), (0.0115, 0.0007), (0.0583, 0.0117)],
    [(0.1331, 0.0599), (0.0133, 0.0019), (0.0122, 0.0011), (0.0526, 0.0129)],
    [(0.0868, 0.0296), (0.0116, 0.0008), (0.0118, 0.0003), (0.0610, 0.0130)],
    [(0.1125, 0.0361), (0.0121, 0.0011), (0.0131, 0.0014), (0.0591, 0.0148)],
];
const GAUSSIAN_REGULARISED: [[MeanSd; 4]; 10] = [
    [(0.5617, 0.0031), (0.0444, 0.0032), (0.0111, 0.0016), (0.0169, 0.0002)],
    [(0.2071, 0.0173), (0.0198, 0.0013), (0.0107, 0.0009), (0.0351, 0.0016)],
    [(0.1208, 0.0522), (0.0147, 0.0024), (0.0126, 0.0038), (0.0483, 0.0063)],
    [(0.1034, 0.0286), (0.0132, 0.0001), (0.0114, 0.0005), (0.0510, 0.0082)],
    [(0.1141, 0.0459), (0.0132, 0.0018), (0.0121, 0.0015), (0.0512, 0.0109)],
    [(0.1239, 0.0235), (0.0127, 0.0006), (0.0119, 0.0009), (0.0528, 0.0109)],
    [(0.1297, 0.0369), (0.0132, 0.0012), (0.0124, 0.0008), (0.0521, 0.0106)],
    [(0.1118, 0.0223), (0.0124, 0.0006), (0.0126, 0.0007), (0.0564, 0.0120)],
    [(0.1134, 0.0317), (0.0126, 0.0010), (0.0130, 0.0008), (0.0592, 0.0145)],
    [(0.1309, 0.0166), (0.0124, 0.0008), (0.0128, 0.0010), (0.0578, 0.0166)],
];
const GMM2_LINEAR: [MeanSd; 4] =
    [(0.2376, 0.0318), (0.1265, 0.0043), (0.2237, 0.0038), (0.0680, 0.0224)];
const GMM2_GMM: [MeanSd; 4] =
    [(0.0300, 0.0055), (0.1198, 0.0035), (0.2241, 0.0049), (0.0425, 0.0092)];
const GMM2: [[MeanSd; 4]; 10] = [
    [(0.3848, 0.0061), (0.1273, 0.0033), (0.2121, 0.0139), (0.0156, 0.0022)],
    [(0.1738, 0.0037), (0.1234, 0.0038), (0.2190, 0.0185), (0.0269, 0.0045)],
    [(0.1289, 0.0157), (0.1220, 0.0046), (0.2131, 0.0125), (0.0344, 0.0061)],
    [(0.1406, 0.0100), (0.1231, 0.0041), (0.2160, 0.0080), (0.0353, 0.0071)],
    [(0.1612, 0.0184), (0.1226, 0.0044), (0.2176, 0.0110), (0.0346, 0.0071)],
    [(0.1459, 0.0328), (0.1229, 0.0049), (0.2106, 0.0165), (0.0376, 0.0066)],
    [(0.2105, 0.0659), (0.1223, 0.0049), (0.2003, 0.0097), (0.0351, 0.0077)],
    [(0.2053, 0.0531), (0.1232, 0.0029), (0.2106, 0.0164), (0.0382, 0.0083)],
    [(0.1955, 0.0413), (0.1223, 0.0046), (0.2085, 0.0070), (0.0390, 0.0082)],
    [(0.1689, 0.0327), (0.1213, 0.0041), (0.2135, 0.0147), (0.0431, 0.0078)],
];
const GMM2_REGULARISED: [[MeanSd; 4]; 10] = [
    [(0.3886, 0.0127), (0.1277, 0.0037), (0.2075, 0.0100), (0.0154, 0.0023)],
    [(0.1897, 0.0242), (0.1246, 0.0048), (0.2151, 0.0128), (0.0261, 0.0044)],
    [(0.1876, 0.0508), (0.1232, 0.0028), (0.2139, 0.0134), (0.0306, 0.0066)],
    [(0.1544, 0.0382), (0.1232, 0.0029), (0.2185, 0.0085), (0.0337, 0.0068)],
    [(0.1700, 0.0297), (0.1238, 0.0042), (0.2167, 0.0115), (0.0342, 0.0067)],
    [(0.1712, 0.0562), (0.1229, 0.0035), (0.2080, 0.0113), (0.0351, 0.0074)],
    [(0.1521, 0.0196), (0.1218, 0.0036), (0.2161, 0.0055), (0.0388, 0.0078)],
    [(0.2274, 0.0785), (0.1232, 0.0036), (0.2112, 0.0119), (0.0358, 0.0090)],
    [(0.1502, 0.0217), (0.1212, 0.0043), (0.2139, 0.0055), (0.0411, 0.0089)],
    [(0.2283, 0.0069), (0.1240, 0.0019), (0.2122, 0.0066), (0.0367, 0.0073)],
];
const BETA_LINEAR: [MeanSd; 4] =
    [(0.2342, 0.0316), (0.2758, 0.0083), (0.5434, 0.0323), (0.1274, 0.0442)];
const BETA_GMM: [MeanSd; 4] =
    [(0.4070, 0.0116), (0.2733, 0.0090), (0.5229, 0.0085), (0.0607, 0.0032)];
const BETA: [[MeanSd; 4]; 10] = [
    [(0.8474, 0.0204), (0.2753, 0.0078), (0.5546, 0.0053), (0.0162, 0.0030)],
    [(0.5480, 0.0108), (0.2758, 0.0084), (0.5486, 0.0234), (0.0290, 0.0062)],
    [(0.3831, 0.0143), (0.2760, 0.0078), (0.5373, 0.0207), (0.0421, 0.0096)],
    [(0.2822, 0.0071), (0.2753, 0.0088), (0.5361, 0.0161), (0.0551, 0.0135)],
    [(0.2249, 0.0211), (0.2749, 0.0073), (0.5247, 0.0122), (0.0669, 0.0178)],
    [(0.1914, 0.0163), (0.2749, 0.0080), (0.5246, 0.0021), (0.0765, 0.0214)],
    [(0.1722, 0.0149), (0.2755, 0.0091), (0.5364, 0.0273), (0.0861, 0.0258)],
    [(0.1589, 0.0165), (0.2750, 0.0087), (0.5504, 0.0235), (0.0930, 0.0275)],
    [(0.1671, 0.0227), (0.2749, 0.0075), (0.5294, 0.0177), (0.0958, 0.0294)],
    [(0.1694, 0.0246), (0.2751, 0.0082), (0.5362, 0.0266), (0.0982, 0.0307)],
];
const BETA_REGULARISED: [[MeanSd; 4]; 10] = [
    [(0.8743, 0.0326), (0.2743, 0.0083), (0.5369, 0.0212), (0.0161, 0.0034)],
    [(0.5576, 0.0080), (0.2756, 0.0072), (0.5384, 0.0197), (0.0290, 0.0059)],
    [(0.3774, 0.0081), (0.2745, 0.0083), (0.5367, 0.0116), (0.0419, 0.0102)],
    [(0.2874, 0.0257), (0.2753, 0.0076), (0.5472, 0.0145), (0.0551, 0.0135)],
    [(0.2323, 0.0154), (0.2760, 0.0067), (0.5375, 0.0106), (0.0657, 0.0176)],
    [(0.1933, 0.0192), (0.2748, 0.0087), (0.5317, 0.0230), (0.0765, 0.0211)],
    [(0.1834, 0.0242), (0.2768, 0.0072), (0.5451, 0.0196), (0.0847, 0.0238)],
    [(0.1807, 0.0062), (0.2750, 0.0078), (0.5305, 0.0072), (0.0888, 0.0276)],
    [(0.1706, 0.0298), (0.2752, 0.0083), (0.5405, 0.0129), (0.0922, 0.0304)],
    [(0.1718, 0.0245), (0.2740, 0.0085), (0.5286, 0.0219), (0.0949, 0.0288)],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_head() {
        let kl = |dataset, kind| saved(dataset, kind).map(|saved| saved.kl.0);
        let fourier = |frequencies, gamma| HeadKind::Fourier { frequencies, gamma };
        assert_eq!(kl(Dataset::Gaussian, HeadKind::Linear), Some(0.1695));
        assert_eq!(kl(Dataset::Beta, HeadKind::Gmm { components: 2 }), Some(0.4070));
        assert_eq!(kl(Dataset::Gmm2, fourier(12, 0.0)), Some(0.1459));
        assert_eq!(kl(Dataset::Gmm2, fourier(12, 1e-6)), Some(0.1712));
        assert_eq!(kl(Dataset::Beta, fourier(2, 0.0)), Some(0.8474));
        assert_eq!(kl(Dataset::Beta, fourier(20, 1e-6)), Some(0.1718));
        for absent in [fourier(3, 0.0), fourier(22, 0.0), fourier(12, 0.1), HeadKind::Pointwise] {
            assert_eq!(saved(Dataset::Beta, absent), None, "{absent}");
        }
    }
}
