/* How a Darknet built with OpenCV reads image files wherever darknet_amp_reads is 1, and crops images for
 * training. Darknet's files that call OpenCV include this header. */
#ifndef DARKNET_AMP_OPENCV_HPP
#define DARKNET_AMP_OPENCV_HPP

#include <algorithm>

#include "darknet_amp.h"

/* Converts BGR or BGRA, OpenCV's order, to RGB or RGBA in place. It works on a few rows at a time, because
 * allocating memory for a second photo of 12 megapixels takes longer than the conversion. */
static inline void darknet_amp_to_rgb(cv::Mat &mat)
{
    enum { ROWS = 16 };
    cv::Mat turned;
    for (int y = 0; y < mat.rows; y += ROWS) {
        cv::Mat rows = mat.rowRange(y, std::min(y + ROWS, mat.rows));
        cv::cvtColor(rows, turned, mat.channels() == 3 ? cv::COLOR_BGR2RGB : cv::COLOR_BGRA2RGBA);
        turned.copyTo(rows);
    }
}

/* Returns 0 if the caller must crop, as in stock Darknet. Returns 1 if `cropped` is the crop that Darknet
 * would make, with the part outside the photo filled with the photo's mean color. A crop that lies inside the
 * photo shares the photo's memory, and must not be written to. */
static inline int darknet_amp_crop(const cv::Mat &photo, const cv::Rect &crop, cv::Mat &cropped)
{
    const cv::Rect inside = crop & cv::Rect(cv::Point(0, 0), photo.size());
    if (!darknet_amp_reads() || inside.area() == 0) return 0;
    if (inside == crop) {
        cropped = photo(inside);
        return 1;
    }
    const cv::Scalar mean = cv::mean(photo);
    const cv::Rect place(inside.x - crop.x, inside.y - crop.y, inside.width, inside.height);
    const int right = place.x + place.width, bottom = place.y + place.height;
    cropped.create(crop.size(), photo.type());
    cropped.rowRange(0, place.y).setTo(mean);
    cropped.rowRange(bottom, crop.height).setTo(mean);
    cropped(cv::Rect(0, place.y, place.x, place.height)).setTo(mean);
    cropped(cv::Rect(right, place.y, crop.width - right, place.height)).setTo(mean);
    photo(inside).copyTo(cropped(place));
    return 1;
}

/* Reads an image. flag: as for cv::imread. Returns 0 if the caller must read the image, as in stock Darknet.
 * Returns 1 if mat has the image, rotated according to its EXIF data. Its channels are RGB (or RGBA) if
 * is_rgb is set, else in OpenCV's order. Also returns 1 with an empty mat, after darknet_amp_bad_image has
 * reported the file. With a cache, the image may be reduced (see darknet_amp_photo), and its pixels belong to
 * the cache: they are valid until the thread reads another image, and must not be written to. */
static inline int darknet_amp_imread(const char *file, int flag, int is_rgb, cv::Mat &mat)
{
    const int how = 2 * flag + is_rgb; /* stands for flag and is_rgb in the cache's key */
    int w, h, c;
    mat.release();
    if (!darknet_amp_reads()) return 0;
    if (darknet_amp_bad_image(file, 0)) return 1;
    if (unsigned char *kept = darknet_amp_kept_bytes(file, how, &w, &h, &c)) {
        mat = cv::Mat(h, w, CV_8UC(c), kept);
        return 1;
    }
    try {
        mat = cv::imread(file, flag);
        if (!mat.empty() && !darknet_amp_image_fits(mat.cols, mat.rows, mat.channels())) mat.release();
        if (is_rgb && !mat.empty() && mat.channels() >= 3) darknet_amp_to_rgb(mat);
    } catch (const cv::Exception &e) { /* mostly because the image is too large */
        const bool asserts = e.code == cv::Error::StsAssert;
        darknet_amp_unreadable("OpenCV%s %s", asserts ? " requires" : ":", e.err.c_str());
        mat.release();
    } catch (const std::exception &e) {
        darknet_amp_unreadable("OpenCV: %s", e.what());
        mat.release();
    }
    if (mat.empty()) darknet_amp_bad_image(file, 1);
    else if (mat.depth() == CV_8U && mat.isContinuous()) {
        w = mat.cols, h = mat.rows;
        unsigned char *kept = darknet_amp_keep_bytes(file, how, mat.data, &w, &h, mat.channels());
        if (kept != mat.data) mat = cv::Mat(h, w, CV_8UC(mat.channels()), kept);
    }
    return 1;
}

/* Crops an image that the cache has reduced, and resizes the crop to w x h. img: the image that this
 * thread read last. crop: in pixels of the original photo. Returns 0 if img is not reduced. */
static inline int darknet_amp_crop_reduced(const cv::Mat &img, const cv::Rect &crop, int w, int h,
                                           cv::Mat &sized)
{
    int photo_w, photo_h;
    const double reduction = darknet_amp_photo(&photo_w, &photo_h);
    if (reduction == 1) return 0;
    /* x, y: how many pixels of `img` one pixel of `sized` covers */
    const double x = crop.width / reduction / w, y = crop.height / reduction / h;
    const cv::Matx23d place(x, 0, crop.x / reduction + x / 2 - .5, 0, y, crop.y / reduction + y / 2 - .5);
    cv::warpAffine(img, sized, place, cv::Size(w, h), cv::INTER_LINEAR | cv::WARP_INVERSE_MAP,
                   cv::BORDER_CONSTANT, cv::mean(img));
    return 1;
}

#endif
