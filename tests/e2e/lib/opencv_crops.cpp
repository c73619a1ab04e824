// Crops of darknet_amp_opencv.hpp beside plain forms of the same. A crop of a photo: a canvas of the photo's
// mean, onto which the photo is copied; and the turning of colours beside OpenCV's of a whole photo. A crop
// of a photo that OpenCV has read reduced: where it lies in the photo, the crop of the photo, of slopes of
// one level a pixel, so that each pixel tells its place, to the levels that averages and OpenCV round by.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <opencv2/opencv.hpp>

#include "darknet_amp_opencv.hpp"

enum { W = 248, H = 120, OUT_W = 40, OUT_H = 20 };

static int reduction;

int darknet_amp_photo(int *w, int *h)
{
    *w = W;
    *h = H;
    return reduction;
}
int darknet_amp_reads(void) { return 1; }
// For darknet_amp_imread, which is not called.
int darknet_amp_bad_image(const char *, int) { abort(); }
int darknet_amp_image_fits(int, int, int) { abort(); }
void darknet_amp_unreadable(const char *, ...) { abort(); }
unsigned char *darknet_amp_kept_bytes(const char *, int, int *, int *, int *) { abort(); }
void darknet_amp_keep_bytes(const char *, int, unsigned char *, int, int, int) { abort(); }

static bool same(const cv::Mat &a, const cv::Mat &b)
{
    if (a.size() != b.size() || a.type() != b.type()) return false;
    for (int y = 0; y < a.rows; y++)
        if (std::memcmp(a.ptr(y), b.ptr(y), static_cast<size_t>(a.cols) * a.elemSize())) return false;
    return true;
}

static cv::Mat plain_crop(const cv::Mat &photo, const cv::Rect &crop)
{
    const cv::Rect inside = crop & cv::Rect(0, 0, photo.cols, photo.rows);
    cv::Mat canvas(crop.size(), photo.type(), cv::mean(photo));
    photo(inside).copyTo(canvas(inside - crop.tl()));
    return canvas;
}

static int crops(void)
{
    cv::RNG random(7);
    int inside = 0;
    for (int i = 0; i < 400; i++) {
        const int w = random.uniform(20, 90), h = random.uniform(20, 90);
        cv::Mat photo(h, w, CV_8UC(i % 3 == 0 ? 1 : i % 3 == 1 ? 3 : 4)), cropped, ours, theirs;
        random.fill(photo, cv::RNG::UNIFORM, 0, 256);
        const int left = random.uniform(-w / 2, w / 2), top = random.uniform(-h / 2, h / 2);
        const cv::Rect crop(left, top, random.uniform(1, w) + (left < 0 ? -left : 0),
                            random.uniform(1, h) + (top < 0 ? -top : 0));
        inside += (crop & cv::Rect(0, 0, w, h)) == crop;
        if (!darknet_amp_crop(photo, crop, cropped)) return std::printf("crop %d: nothing was done\n", i), 1;
        cv::resize(cropped, ours, cv::Size(41, 23), 0, 0, cv::INTER_LINEAR);
        cv::resize(plain_crop(photo, crop), theirs, cv::Size(41, 23), 0, 0, cv::INTER_LINEAR);
        if (!same(cropped, plain_crop(photo, crop)) || !same(ours, theirs))
            return std::printf("crop %d: other bytes\n", i), 1;
        if (photo.channels() < 3) continue;
        cv::cvtColor(photo, theirs, photo.channels() == 3 ? cv::COLOR_BGR2RGB : cv::COLOR_BGRA2RGBA);
        darknet_amp_to_rgb(photo);
        if (!same(photo, theirs)) return std::printf("photo %d: other colours\n", i), 1;
    }
    cv::Mat cropped, photo(8, 8, CV_8UC3, cv::Scalar(1, 2, 3));
    if (darknet_amp_crop(photo, cv::Rect(9, 0, 4, 4), cropped))
        return std::puts("a crop beside the photo"), 1;
    return inside > 20 && inside < 380 ? 0 : (std::printf("%d of 400 lie inside\n", inside), 1);
}

static int differs(const cv::Mat &photo, const cv::Rect &crop)
{
    cv::Mat reduced, ours, expected;
    cv::resize(photo, reduced, cv::Size(W / reduction, H / reduction), 0, 0, cv::INTER_AREA);
    if (!darknet_amp_crop_reduced(reduced, crop, OUT_W, OUT_H, ours)) return 1;
    cv::resize(plain_crop(photo, crop), expected, cv::Size(OUT_W, OUT_H), 0, 0, cv::INTER_LINEAR);
    int wrong = ours.size() != expected.size(), seen = 0;
    for (int y = 0; y < OUT_H; y++)
        for (int x = 0; x < OUT_W; x++) { // not beside the photo's edges
            const double at_x = crop.x + (x + .5) * crop.width / OUT_W, margin = reduction;
            const double at_y = crop.y + (y + .5) * crop.height / OUT_H;
            if (at_x < margin || at_x > W - margin || at_y < margin || at_y > H - margin) continue;
            const cv::Vec3b a = ours.at<cv::Vec3b>(y, x), b = expected.at<cv::Vec3b>(y, x);
            for (int k = 0; k < 3; k++) wrong += std::abs(a[k] - b[k]) > 1;
            seen++;
        }
    if (wrong || !seen) printf("1/%d, %d %d: %d of %d differ\n", reduction, crop.x, crop.y, wrong, seen);
    return wrong || !seen;
}

int main()
{
    cv::Mat photo(H, W, CV_8UC3);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) photo.at<cv::Vec3b>(y, x) = cv::Vec3b(x, 2 * y, 255 - x);
    int wrong = crops();
    for (reduction = 2; reduction <= 8; reduction *= 2) {
        wrong += differs(photo, cv::Rect(11, 5, 201, 97));
        wrong += differs(photo, cv::Rect(-31, -17, 260, 150));
        wrong += differs(photo, cv::Rect(0, 0, W, H));
    }
    return wrong != 0;
}
