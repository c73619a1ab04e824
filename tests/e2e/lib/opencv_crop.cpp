// Crops of darknet_amp_opencv.hpp beside a plain form of the same: a canvas of the photo's mean, onto which
// the photo is copied. And its turning of colours beside OpenCV's of a whole photo.
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include <cstdio>
#include <cstring>

#include "darknet_amp_opencv.hpp"

// What the header calls; no image is read here.
int darknet_amp_reads(void) { return 1; }
int darknet_amp_bad_image(const char *, int) { return 0; }
int darknet_amp_image_fits(int, int, int) { return 1; }
void darknet_amp_unreadable(const char *, ...) { }
unsigned char *darknet_amp_kept_bytes(const char *, int, int *, int *, int *) { return nullptr; }
void darknet_amp_keep_bytes(const char *, int, unsigned char *, int, int, int) { }

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

int main()
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
