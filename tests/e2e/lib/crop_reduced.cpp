// A crop of a reduced photo that OpenCV has read is, where the crop lies in the photo, the crop of the photo:
// of slopes of one level a pixel, so that each pixel tells its place, to the levels that averages and OpenCV
// round by.
#include <cstdio>
#include <cstdlib>
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
// For darknet_amp_imread, which is not called.
int darknet_amp_reads(void) { abort(); }
int darknet_amp_bad_image(const char *, int) { abort(); }
int darknet_amp_image_fits(int, int, int) { abort(); }
void darknet_amp_unreadable(const char *, ...) { abort(); }
unsigned char *darknet_amp_kept_bytes(const char *, int, int *, int *, int *) { abort(); }
unsigned char *darknet_amp_keep_bytes(const char *, int, unsigned char *, int *, int *, int) { abort(); }

static int differs(const cv::Mat &photo, const cv::Rect &crop)
{
    cv::Mat reduced, ours, expected;
    cv::resize(photo, reduced, cv::Size(W / reduction, H / reduction), 0, 0, cv::INTER_AREA);
    if (!darknet_amp_crop_reduced(reduced, crop, OUT_W, OUT_H, ours)) return 1;
    const cv::Rect inside = crop & cv::Rect(0, 0, W, H);
    cv::Mat whole(crop.size(), photo.type(), cv::Scalar::all(0));
    photo(inside).copyTo(whole(inside - crop.tl()));
    cv::resize(whole, expected, cv::Size(OUT_W, OUT_H), 0, 0, cv::INTER_LINEAR);
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
    int wrong = 0;
    for (reduction = 2; reduction <= 8; reduction *= 2) {
        wrong += differs(photo, cv::Rect(11, 5, 201, 97));
        wrong += differs(photo, cv::Rect(-31, -17, 260, 150));
        wrong += differs(photo, cv::Rect(0, 0, W, H));
    }
    return wrong != 0;
}
