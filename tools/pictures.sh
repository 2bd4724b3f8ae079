# ./dev pictures: the images of the documents, anew, from what the command draws.
# shellcheck shell=bash

# photograph PAGE IMAGE HEIGHT: as a browser shows it.
photograph() {
    local flags=(--headless --disable-gpu --hide-scrollbars "--window-size=1320,$3")
    [ "$(id -u)" -ne 0 ] || flags+=(--no-sandbox)
    chromium "${flags[@]}" --screenshot="$PWD/$2" "file://$PWD/$1" 2>/dev/null
}

draw_pictures() {
    local images=docs/images folder=build/pictures
    need build browser
    configure build && compile build mica-tool
    mkdir -p "$images" "$folder"
    build/mica plan resnet-small --train --quiet --svg "$images/plan.svg" --html "$folder/plan.html"
    build/mica train lenet --data digits --epochs 3 --quiet --overwrite --checkpoint "$folder/lenet" \
        --report "$folder/report.html"
    photograph "$folder/plan.html" "$images/plan.png" 1080
    photograph "$folder/report.html" "$images/report.png" 1010
    ls -l "$images"
}
